"""Attempts to break strays with damaged and with hostile files: see models.py, tables.py and manifest_bits.py."""
