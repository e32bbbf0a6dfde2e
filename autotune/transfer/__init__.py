"""Predicts times of configs at a problem from times elsewhere: a Gaussian process over configs and problems.

It imports ``core`` and the rooms below it, and NumPy alone, so that packages of winners may bring it along.
"""
