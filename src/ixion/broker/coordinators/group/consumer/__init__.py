"""Groups whose partitions the broker assigns, one heartbeat at a time (KIP-848)."""
