"""A partition on disk, in Apache Kafka's own format: append, read, recover, retain, compact.

Where to begin: `log.Log` (one partition; its offsets and its threads), `manager.LogManager` (all of them, over several
directories), `reader` (what answers a fetch), `log_loader` (what a crash may have left, and what becomes of it).
Below them are the files, one module each: `segment`, `offset_index`, `time_index`, `txn_index`, `snapshot_file`,
`checkpoint`, `epochs`, `meta_properties`, `partition_metadata`. Beside them, for worker threads: `retention`,
`compaction` and `cleaner`, `truncation`, `reindexing`, `disk_guard`. All changes to the disk go through `files`.

The package knows no sockets, no replicas and no event loop; the time comes from a clock that is passed in.
"""
