"""What is applied to each antenna's samples while voltages are made of them: delays and gains, as they change.

Those that stop the fringes of a direction are computed here (``fringe_stopping``). This room imports ``machine`` and
``streams`` of engines.
"""
