"""Services of the operating system: processes, the cache, locks, memory, the environment, its installation.

It imports ``core``, ``runtime`` and ``source``.
"""
