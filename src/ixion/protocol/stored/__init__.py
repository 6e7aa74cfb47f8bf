"""Tables of what is kept in logs and files rather than sent as a request. See `ixion.protocol.records_stored`."""
