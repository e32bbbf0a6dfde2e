"""Which configurations of kernels an engine runs: from a package, recorded sweeps, tuning, or the default.

This room imports ``engines.machine``, and what knows and tunes kernels: records, emit and sweep.
"""
