"""The coordinators of groups (members, offsets) and of transactions (producers, outcomes)."""
