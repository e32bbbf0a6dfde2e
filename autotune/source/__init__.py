"""From a kernel's name to CUDA source: the registry of definitions, and their templates rendered.

It imports ``core`` and ``runtime``.
"""
