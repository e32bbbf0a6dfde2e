"""Tunes a problem at its first use; packages find it by its name. It imports ``sweep`` and the rooms below it."""
