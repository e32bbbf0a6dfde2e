"""Predicts times at a problem from times at other problems, by Gaussian processes over configs and problems: relative
times of configs (``model``), and the best time in seconds (``duration``).

It imports ``core`` and the rooms below it, and from outside only NumPy, so packages of winners may contain it.
"""
