"""The commands of ``autotune``: one module for each, or for a few short ones."""
