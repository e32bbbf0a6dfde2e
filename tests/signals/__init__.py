"""Engines that get a signal at a random moment, in processes of commands and within a process."""
