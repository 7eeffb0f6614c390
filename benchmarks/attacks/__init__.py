"""Attempts to break strays with damaged and with hostile files: see models.py and tables.py."""
