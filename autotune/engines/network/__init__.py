"""SPEAD streams of engines: what is on the wire, and where the heaps that come from it go.

``items`` has the numbers of the wire, and ``placing`` decides in C (``place.c``) where each heap lands in the engine's
own memory. spead2, of the extra ``network``, is imported by what receives and sends, never when this room is. The room
imports ``streams`` of engines, ``devices``, whose compiler it uses, and ``core``, nothing of other rooms of engines.
"""
