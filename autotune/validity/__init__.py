"""Says whether what was recorded still holds: whether today's texts are, or make, the machine code that was measured.

It imports ``trial`` and the rooms below it.
"""
