"""Takes one config through the stations: case, compile, verify, measure. It also owns the processes of a device.

It imports ``devices`` and the rooms below it.
"""
