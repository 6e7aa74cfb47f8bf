"""Client quotas: the limit of a client, its rate, and its throttle time. No I/O."""
