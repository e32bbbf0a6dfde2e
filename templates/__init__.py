"""Data of the package: one ``<kernel>.cu.j2`` per operation, and what they share in ``lib/``."""
