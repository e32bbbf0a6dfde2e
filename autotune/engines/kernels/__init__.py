"""Which configurations of kernels an engine runs: from a package, recorded sweeps, tuning, or the default.

It also says how long launches are expected to take. This room imports ``engines.machine``, and what knows, predicts and
tunes kernels: records, transfer, prediction, analysis, emit and sweep.
"""
