"""The vocabulary of the whole system: error codes, exceptions, ids, names. It imports the standard library only."""
