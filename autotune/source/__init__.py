"""Turns a kernel's name into CUDA source: the registry of definitions, and their templates rendered.

It also knows what installed packages add to the other rooms.

It imports ``core`` and ``runtime``.
"""
