"""Streams groups (KIP-1071): their rules, without I/O."""
