"""Pictures of what engines make: spectra and waterfalls of voltages; spectra, fringes and coherence of visibilities.

A summary is a sink of constant memory (``voltage_summary``, ``visibility_summary``, both on ``rows``), and a picture is
made of it afterwards (``voltage_picture``, ``visibility_picture``, both on ``drawing``). This room imports ``streams``
of engines and ``core``; matplotlib is imported when a picture is made.
"""
