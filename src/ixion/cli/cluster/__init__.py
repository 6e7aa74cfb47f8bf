"""`ixion cluster`: a cluster on this machine, what a cluster is like, and moves of its partitions."""
