"""Classic groups: the broker gathers the members, and their leader assigns partitions (JoinGroup, SyncGroup)."""
