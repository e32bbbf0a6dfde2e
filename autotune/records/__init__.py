"""Records of sweeps on disk: their folders, how they are read and checked, estimates from them, exports,
and studies of Optuna's.

It imports ``trial`` and the rooms below it: ``core``, ``runtime``, ``source``, ``system`` and ``devices``.
"""
