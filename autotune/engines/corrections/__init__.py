"""Corrections of each antenna's samples on the way to voltages: delays and gains, which change with time.

``fringe_stopping`` computes the delays that stop the fringes of a direction. This room imports ``machine`` and
``streams`` of engines.
"""
