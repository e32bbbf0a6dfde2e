"""Both engines as one: voltages of several antennas are joined on the device, and never leave it.

This room imports ``engines.f`` and ``engines.x``, and what lies below them.
"""
