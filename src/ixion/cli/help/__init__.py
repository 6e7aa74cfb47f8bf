"""`ixion help` and the pages that `--help` prints."""
