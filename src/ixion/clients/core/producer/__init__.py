"""A producer without I/O: records in, Produce requests out, deliveries back. See `machine.ProducerMachine`."""
