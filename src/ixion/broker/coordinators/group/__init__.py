"""The group coordinator: the members of groups, the partitions that they read, and their offsets."""
