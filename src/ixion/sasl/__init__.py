"""SASL mechanisms as machines without I/O: bytes of the other side in, bytes for it out. One file each.

They need the standard library only, so that the broker and our own clients share them.
"""
