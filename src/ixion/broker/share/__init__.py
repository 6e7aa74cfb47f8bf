"""Share partitions at the partition's leader (KIP-932): which member has which record, and what waits to come back."""
