"""The simulation of samples that ``sky`` and ``digitiser`` share: blocks at absolute times, and their quantisation.

This room imports no other.
"""
