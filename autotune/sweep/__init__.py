"""Sweeps: the loop over trials, the final round, settings, requests and progress.

It imports ``search`` and the rooms below it.
"""
