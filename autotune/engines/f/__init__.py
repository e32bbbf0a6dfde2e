"""The F-engine: samples of one antenna in, voltages of channels out, of one or several bands.

``engine`` runs a ``chain``: an ``input``, bands (``band``, ``narrow_band``) and an ``output`` of each. A band has a
``plan`` and a filter bank. This room imports what both engines need: ``run``, ``kernels``, ``corrections``, ``machine``
and ``streams`` of engines, nothing of the X-engine.
"""
