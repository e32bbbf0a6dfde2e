"""The X-engine: voltages of all antennas in, visibilities out.

``engine`` runs a ``stage``, which follows a ``plan``, and an ``output``. This room imports what both engines need:
``run``, ``kernels``, ``machine`` and ``streams`` of engines, but not the F-engine.
"""
