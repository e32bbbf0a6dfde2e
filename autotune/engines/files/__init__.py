"""Files as sources and sinks of engines: recorded samples in, voltages and visibilities out.

Delays and gains are read from files, too. There is one module for each format. This room imports ``streams``,
``corrections`` and ``core``, but no other room. Packages that read and write HDF5, UVH5 and Measurement Sets are
imported when such a file is opened.
"""
