"""Records that ask for a later delivery: where they wait, and how they are delivered; see `schedule`."""
