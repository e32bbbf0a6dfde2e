"""The choice of kernels' configurations for an engine: from a package, recorded sweeps, tuning, or the default.

It also estimates the times of launches. This room imports ``engines.machine``, and the rooms that record, recommend
and tune: records, recommend, analysis, emit and sweep.
"""
