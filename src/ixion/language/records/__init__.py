"""Record batches: Kafka's format v2 (magic 2), its five codecs, its checksum.

Start with `batch.BatchView` (reads a batch), `builder.BatchBuilder` (makes one) and `validate.validate_produce`
(decides whether a producer's batch may enter the log). This package does no I/O. A codec library is imported by the
first batch that needs it.
"""

# The modules of this package are compiled: see setup.py.
