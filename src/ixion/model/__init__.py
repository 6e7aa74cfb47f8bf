"""The vocabulary of the whole system: error codes, exceptions, ids. It imports the standard library only."""
