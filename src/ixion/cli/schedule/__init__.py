"""`ixion schedule`: shows and cancels delayed records."""
