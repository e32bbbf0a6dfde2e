"""Answers for problems that nobody recorded: ranks configs by experience, renders the first that compiles, checks it.

It imports ``rendering``, ``transfer`` and the rooms below them, and packages of winners bring it along.
"""
