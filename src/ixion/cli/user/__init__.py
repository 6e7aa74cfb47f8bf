"""`ixion user`: users that log in, on a running broker or in its data."""
