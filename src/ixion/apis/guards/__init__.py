"""The rights that each API requires if the broker has an authorizer. `table` has the rule of every key."""
