"""Hierarchical timing wheels: a timer for threads, a timer for an event loop, one core."""
