"""Winners of recorded sweeps, or a portfolio of them, written as a package that needs no autotune.

It imports ``analysis`` and the rooms below it, and copies ``core`` and ``runtime``.
"""
