"""Runs tuned kernels without the tuner: wisdom, lookup, launcher, and access to the GPU.

It imports ``core`` only. Packages that ``autotune emit`` writes bring both folders along as they are.
"""
