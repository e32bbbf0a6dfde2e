"""Plays: senders that fail in drawn ways before an X-engine on loopback, and the counters that must tell it."""
