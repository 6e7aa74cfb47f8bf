"""One micro-batch: its plan, what is expected of its rows, and how it is written and counted."""
