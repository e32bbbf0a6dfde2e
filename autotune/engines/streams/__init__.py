"""The inputs and outputs of engines: streams of samples, of voltages and of visibilities, and their times.

A file, an array in memory (``in_memory``) or a network is a source or a sink. This room imports from ``core``, but no
other room of engines.
"""
