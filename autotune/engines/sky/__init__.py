"""A simulated sky: the samples that an array's antennas would record, with noise, point sources, tones and holes.

``spec`` has what a sky is, ``description`` reads it from sky.toml, ``geometry`` says where antennas and sources are,
``track`` how late each source is at each antenna, ``samples`` makes the samples, and ``record`` writes them.
``expected`` has the visibilities that theory expects. This room imports ``simulated``, ``files``,
``corrections`` and ``streams`` of engines, and ``core``.
"""
