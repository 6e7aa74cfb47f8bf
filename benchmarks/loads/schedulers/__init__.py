"""Ways to have a message delivered later, each behind the same few calls (`scheduler`)."""
