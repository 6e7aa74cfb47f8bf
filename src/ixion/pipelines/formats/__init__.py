"""From the bytes of a record to columns: JSON, Avro, Protobuf, schema registries, and drift from the schema."""
