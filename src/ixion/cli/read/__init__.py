"""`ixion read`: writes records into files with columns."""
