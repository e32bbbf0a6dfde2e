"""Finds definitions by a kernel's name or path, and writes the first files of a new kernel.

It also finds the parts that installed packages add to other rooms.

It imports ``core`` and ``runtime``.
"""
