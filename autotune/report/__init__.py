"""Builds pages of recorded sweeps, with pictures, which need no network, and figures for notebooks.

It imports ``analysis`` and the rooms below it. Plotly's script draws the pictures; plotly is imported when a page is
built.
"""
