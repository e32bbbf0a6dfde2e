"""Sweeps: the loop over trials, the final round, settings, requests and progress.

It imports ``report``, for the pictures of a sweep, ``search`` and the rooms below them.
"""
