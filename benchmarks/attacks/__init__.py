"""Attempts to break strays with damaged and with hostile files, and with faults at every call.

See models.py, tables.py, model_bits.py, manifest_bits.py and faults/.
"""
