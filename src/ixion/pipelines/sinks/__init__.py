"""Where a batch is written, each sink idempotent by (checkpoint, batch): a batch that comes again changes nothing."""
