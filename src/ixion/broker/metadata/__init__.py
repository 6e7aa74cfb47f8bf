"""The metadata of a cluster, a tree of versioned nodes. Start reading at `session.py`."""
