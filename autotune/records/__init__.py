"""Records of sweeps as data: trials and their figures, folders on disk, checks of what is read, exports, and studies of
Optuna's. Nothing here compiles, launches or measures.

It imports ``system``, ``source``, ``runtime`` and ``core``.
"""
