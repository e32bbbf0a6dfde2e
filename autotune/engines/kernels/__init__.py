"""The choice of kernels' configurations for an engine: from a package, recorded sweeps, tuning, or the default.

It also estimates the times of launches. This room imports ``engines.machine``, and the rooms that record, predict and
tune: records, transfer, prediction, analysis, emit and sweep.
"""
