"""What a cluster knows of itself, as a tree of versioned nodes. Start reading at `session.py`."""
