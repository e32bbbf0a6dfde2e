"""Checks whether records still hold: whether today's texts are unchanged, or give the measured machine code.

It imports ``trial`` and the rooms below it.
"""
