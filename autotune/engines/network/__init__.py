"""SPEAD streams of engines: the layout on the wire, and the places of received heaps in memory.

``items`` has the numbers of the wire, and ``placing`` decides in C (``place.c``) where each heap lands in the engine's
own memory. The modules that receive and send import spead2, from the extra ``network``; this module does not. The room
imports ``streams`` of engines, ``devices``, for its compiler, and ``core``, but no other room of engines.
"""
