"""Record batches: Kafka's format v2 (magic 2), its five codecs, its checksum.

Start with `batch.BatchView` (look at a batch), `builder.BatchBuilder` (make one) and `validate.validate_produce`
(decide whether a stranger's batch may enter the log). Nothing here does I/O, and no codec library is imported before
the first batch that needs it.
"""
