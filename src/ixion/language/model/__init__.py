"""Values that the whole system uses: error codes, exceptions, ids, names. It imports only the standard library."""
