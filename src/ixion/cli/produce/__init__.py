"""`ixion produce`: sends lines of files or of standard input."""
