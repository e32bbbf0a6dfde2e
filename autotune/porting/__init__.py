"""Kernels in a plain .cu file: a call of ``tune_kernel`` becomes a definition, which is tuned like any other.

``call`` reads the call: ``source`` reads the CUDA, ``cuda_signature`` its parameters, ``array_memory`` the layout of
arrays, ``rules`` the restrictions; ``sizes`` finds the numbers that are sizes. ``formulas`` holds grid, block and
macros as functions of a config. ``probing`` finds the arrays that the kernel writes, by launches (``launching``) with
other ``contents``. ``answers`` are the expected outputs, and ``judges`` compares those that a definition's reference
cannot. ``definition_writer`` writes the definition (``text``, ``formula_tables``) and its data, and ``call_tuning``
runs the sweep. The room imports ``sweep`` and the rooms below it.
"""
