"""SASL mechanisms as state machines without I/O: bytes of the other side in, bytes for it out. One file each.

They need only the standard library; the broker and our own clients share them.
"""
