"""Kernels of a plain .cu file: what a call of ``tune_kernel`` says becomes a definition, which is tuned like any other.

``call`` reads what is said, ``source`` the CUDA, ``signature`` its arguments, ``expressions`` restrictions and sizes as
text. ``definition`` writes the definition and its data; ``probing`` finds out what the kernel writes; ``tuning`` runs
the sweep. The room imports ``sweep`` and the rooms below it.
"""
