"""Tables of what is kept in logs and files rather than sent. Read and written by `ixion.protocol.storage`."""
