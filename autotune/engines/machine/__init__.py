"""What an engine runs on: a GPU or the host, its memory and streams, and what they did when.

This room imports from ``core``, ``source``, ``runtime`` and ``devices``, and nothing of other rooms of engines.
"""
