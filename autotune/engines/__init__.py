"""The systems that the kernels are for: an F-engine and an X-engine, from samples to voltages to visibilities.

This room imports from those that run kernels (runtime, source, devices and below), from records and emit, which say
which config is fastest, and from sweep, which finds it.
"""
