"""The running of an engine: its lifecycle, its threads, the queues between them, its counters, and its progress.

This room imports ``engines.machine`` and ``engines.streams``.
"""
