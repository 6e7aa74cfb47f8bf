"""Reading topics: the broker, its topics and offsets, lost records, and the stream of records."""
