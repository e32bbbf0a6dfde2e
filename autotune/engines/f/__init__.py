"""The F-engine: samples of one antenna in, voltages of channels of one or several bands out.

``engine`` runs a ``chain``: an ``input``, bands (``band``, ``narrow_band``) and an ``output`` for each. A band has a
``plan`` and a filter bank. This room imports what both engines need: ``run``, ``kernels``, ``corrections``, ``machine``
and ``streams`` of engines, but not the X-engine.
"""
