"""Both engines in one process: voltages of several antennas are joined on the device, and never leave it.

This room imports ``engines.f`` and ``engines.x``, and the rooms below them.
"""
