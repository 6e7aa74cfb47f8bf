"""Encodes and decodes the types of the protocol. Compiled; it contains no message table."""
