"""Renders a definition's template for a problem and a config, and checks the source against the definition.

It imports ``core`` and the rooms below it, and from outside only Jinja, so packages of winners may contain it.
"""
