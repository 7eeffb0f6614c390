"""Attempts to break strays with files that nobody wrote on purpose, or that somebody did: see models.py and tables.py."""
