"""Groups whose members agree among themselves: the broker gathers them, one of them assigns (JoinGroup, SyncGroup)."""
