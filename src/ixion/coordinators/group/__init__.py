"""The group coordinator: who is in a group, who reads which partition, and how far they have read."""
