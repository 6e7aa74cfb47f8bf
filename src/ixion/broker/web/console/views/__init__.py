"""HTML of each view, from the same data that /api/v1 returns."""
