"""Recommends configs for a problem on a device, each with its expected loss and a bound, from recorded sweeps.

``candidates`` ranks them; sweeps, packages, engines and first uses take the head of this list. It
imports ``rendering`` and the rooms below it. Packages of winners contain it.
"""
