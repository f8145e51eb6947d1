"""Errors, files, locks, logs, settings, databases, health and the wire."""
