"""Tests of tuning at first use."""
