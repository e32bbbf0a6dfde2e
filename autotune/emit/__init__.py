"""Writes winners of recorded sweeps, or a portfolio, as a package that does not need autotune.

It imports ``analysis`` and the rooms below it, and copies ``core`` and ``runtime``.
"""
