"""One table per API key. Imported one by one, when a key is first met (see `registry`)."""
