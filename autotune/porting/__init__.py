"""Kernels of a plain .cu file: what a call of ``tune_kernel`` says becomes a definition, which is tuned like any other.

``call`` reads what is said: ``source`` the CUDA, ``signature`` its arguments, ``memory`` arrays as they lie, ``rules``
restrictions, ``sizes`` which numbers are sizes. ``formulas`` says once what follows for a config. ``probing`` finds out
what the kernel writes, by launches (``launching``) from other ``contents``; ``answers`` are what outputs must hold, and
``judges`` compares what a definition's reference does not. ``definition`` writes the definition (``text``, ``tables``)
and its data, and ``tuning`` runs the sweep. The room imports ``sweep`` and the rooms below it.
"""
