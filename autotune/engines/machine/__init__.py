"""The machine of an engine: a GPU or the host, its memory and streams, and the times of its work.

This room imports from ``core``, ``source``, ``runtime`` and ``devices``, but no other room of engines.
"""
