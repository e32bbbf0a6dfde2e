"""Analyses records: noise, which parameters matter, small portfolios, what fallbacks lose, and the views of `show`.

It imports ``search``, ``records`` and the rooms below them.
"""
