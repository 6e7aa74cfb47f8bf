"""Client quotas: which limit holds for a client, how fast it goes, and how long it must wait. No I/O."""
