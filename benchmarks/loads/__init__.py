"""What the benchmarks do to ours and to our Python peers, in plain Python as a user would write it."""
