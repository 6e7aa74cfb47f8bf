"""`ixion serve`: a broker as a process."""
