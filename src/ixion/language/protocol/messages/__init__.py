"""One table per API key, each imported at the first use of its key (see `registry`)."""
