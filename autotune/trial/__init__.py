"""Takes one config through the stations: case, compile, verify, measure, and the processes that do it beside a device.

It imports ``devices`` and the rooms below it.
"""
