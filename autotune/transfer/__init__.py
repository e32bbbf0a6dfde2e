"""Predicts times at a problem from times elsewhere, of configs beside each other (``model``) and of the best one in
seconds (``duration``): Gaussian processes over configs and problems.

It imports ``core`` and the rooms below it, and NumPy alone, so that packages of winners may bring it along.
"""
