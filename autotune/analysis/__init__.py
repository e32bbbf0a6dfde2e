"""Analyses records: noise, importance of parameters, small portfolios, losses of fallbacks, and the views of `show`.

It imports ``search``, ``records`` and the rooms below them.
"""
