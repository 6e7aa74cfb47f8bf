"""Upkeep of tables: what is done to each, when, and the results."""
