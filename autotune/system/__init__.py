"""Services of the operating system: processes, the cache, locks, memory, the environment; autotune's installation.

It imports ``core``, ``runtime`` and ``source``.
"""
