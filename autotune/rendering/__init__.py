"""Turns a definition's template, a problem and a config into CUDA source, and checks the two against each other.

It imports ``core`` and the rooms below it, and Jinja alone, so that packages of winners may bring it along.
"""
