"""Records of sweeps as data: trials and their figures, folders on disk, checks of their files, exports, and Optuna
studies. This room compiles, launches and measures nothing.

It imports ``system``, ``source``, ``runtime`` and ``core``.
"""
