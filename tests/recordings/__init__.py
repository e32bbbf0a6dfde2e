"""Recordings drawn at random, written as others write them, and what an independent correlator makes of them."""
