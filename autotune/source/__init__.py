"""Finds definitions by a kernel's name or path, and writes the first files of a new one.

It also knows what installed packages add to the other rooms.

It imports ``core`` and ``runtime``.
"""
