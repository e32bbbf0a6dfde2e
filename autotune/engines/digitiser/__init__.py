"""A simulated digitiser's signal: the samples of each polarisation as functions of time, without a network.

``waveforms`` has what signals are made of, ``signal_language`` reads them from text, ``counter_noise`` draws their
noise, ``digitised_signal`` and ``repeated_signal`` make packed samples of them, on the fly or of one period.
``packet_faults`` plans what is lost on the way, ``digitiser_settings`` reads all of it from TOML, and
``digitiser_source`` gives an engine the same samples. This room imports ``simulated``, ``files`` and ``streams`` of
engines, and ``core``.
"""
