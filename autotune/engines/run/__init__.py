"""How an engine runs: its threads, the queues between them, what it counts, and its progress.

This room imports ``engines.machine`` and ``engines.streams``.
"""
