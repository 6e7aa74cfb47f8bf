"""ACLs: their rules, which rule decides, and a cache of decisions. No I/O."""
