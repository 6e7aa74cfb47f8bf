"""`ixion topic`: creates, shows, changes and deletes topics."""
