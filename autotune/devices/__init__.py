"""Devices: one module each behind the interface of ``base``."""
