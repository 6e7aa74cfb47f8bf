"""What each API demands of a client's rights, when the broker has an authorizer. `table` has the rule of every key."""
