"""`ixion consume`: prints records, copies them, reads in a group."""
