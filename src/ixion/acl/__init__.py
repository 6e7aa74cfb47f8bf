"""Access rules: what they are, which one decides, and decisions that are remembered. No I/O."""
