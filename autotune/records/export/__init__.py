"""Recorded sweeps for other programs: tables (CSV, Parquet), T4 results, and Kernel Tuner's cache files."""
