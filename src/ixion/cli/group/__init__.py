"""`ixion group`: shows groups, resets their offsets, watches their lag."""
