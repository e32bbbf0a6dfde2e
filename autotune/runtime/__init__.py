"""What runs tuned kernels without a tuner: wisdom, lookup, launcher, and the GPU as they need it.

It imports ``core`` only. Packages that ``autotune emit`` writes bring both folders along as they are.
"""
