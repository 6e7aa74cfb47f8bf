"""Delayed operations."""
