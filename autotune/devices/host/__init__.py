"""The host device."""
