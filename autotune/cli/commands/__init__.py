"""The commands of ``autotune``, a module for each that has more than a few lines."""
