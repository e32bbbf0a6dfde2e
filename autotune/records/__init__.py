"""Records of sweeps on disk: their folders, how they are read and checked, estimates from them, and exports.

It imports ``trial`` and the rooms below it: ``core``, ``runtime``, ``source``, ``system`` and ``devices``.
"""
