"""Encodes and decodes the types of the protocol. Compiled; it contains no message table."""

# The modules of this package are compiled: see setup.py.
