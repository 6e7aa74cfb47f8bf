"""Share groups (KIP-932) at the group coordinator: members, their partitions, and start offsets."""
