"""Pictures of engines' results: spectra and waterfalls of voltages; spectra, fringes and coherence of visibilities.

A summary is a sink that uses constant memory (``voltage_summary``, ``visibility_summary``, both on ``rows``). A
picture is drawn from it afterwards (``voltage_picture``, ``visibility_picture``, both on ``drawing``). This room
imports ``streams`` of engines and ``core``; matplotlib is imported when a picture is drawn.
"""
