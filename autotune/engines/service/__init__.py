"""Engines that run until someone stops them: their configuration files, and their recovery after faults.

A simulated digitiser, an F-engine and an X-engine each have a module for their file. The room imports from all other
rooms of engines.
"""
