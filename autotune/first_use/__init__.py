"""Tunes a problem at its first use: a few candidates are compiled, checked and timed on this machine, within seconds.

It imports ``sweep``, for its rule of ties, and the rooms below it. Packages of winners find it by its name.
"""
