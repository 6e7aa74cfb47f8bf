"""`ixion wheel`: shows a live timing wheel."""
