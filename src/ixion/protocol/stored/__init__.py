"""Tables of what is kept in logs and files rather than sent as a request. Read and written by `ixion.protocol.storage`."""
