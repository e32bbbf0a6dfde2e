"""Predicts for problems without a record: ranks configs by experience, renders the first that compiles, and checks it.

It imports ``rendering``, ``transfer`` and the rooms below them. Packages of winners contain it.
"""
