"""Sinks. Each is idempotent by (checkpoint, batch number): writing a batch again changes nothing."""
