"""A partition on disk, in Apache Kafka's own format: append, read, recover, retain, compact."""
