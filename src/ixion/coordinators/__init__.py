"""Coordinators keep what clients agree on: groups and their offsets, transactions and their outcome."""
