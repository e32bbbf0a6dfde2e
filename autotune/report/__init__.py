"""Makes pages of recorded sweeps, with pictures, that a browser opens without a network, and figures for notebooks.

It imports ``analysis`` and the rooms below it. The pictures are drawn by plotly's script, which is imported when a page
is made.
"""
