"""`ixion perf`: loads for a cluster, and what they measure."""
