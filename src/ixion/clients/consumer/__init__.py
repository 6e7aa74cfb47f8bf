"""What reads topics.

`consumer.Consumer` is the blocking face of `ixion.clients.core.consumer`: it reads partitions, alone or in a group, for
as long as it is polled. `ranges` reads from here to there and is done; `arrow` hands columns to pyarrow. Nothing is
imported by the package itself, so a caller pays for what it uses.
"""
