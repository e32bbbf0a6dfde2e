"""Engines that run until they are told to stop: what their configuration files say, and how they go on after faults.

A digitiser that is simulated, an F-engine and an X-engine each have a module for their file. The room imports from all
others of engines.
"""
