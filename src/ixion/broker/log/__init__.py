"""A partition on disk, in Apache Kafka's own format: append, read, recover, retain, compact.

Where to begin: `log.Log` (one partition: offsets, locks, append), `manager.LogManager` (all partitions, over several
directories), `reader` (reads for a fetch), `log_loader` (loads a partition, also after a crash).
Below them are the files, one module each: `segment`, `offset_index`, `time_index`, `txn_index`, `snapshot_file`,
`checkpoint`, `epochs`, `meta_properties`, `partition_metadata`. Beside them, for worker threads: `retention`,
`compaction` and `cleaner`, `truncation`, `reindexing`, `disk_guard`. All changes to the disk go through `files`.

The package does not depend on sockets, replicas or the event loop; the time comes from a clock that is passed in.
"""
