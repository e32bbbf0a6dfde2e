"""What is applied to each antenna's samples while voltages are made of them: delays and gains, as they change.

This room imports ``engines.machine``.
"""
