"""What reads topics.

`consumer.Consumer` is the face: it reads partitions, alone or in a group, for as long as it is polled. `subscription`
and `buffer` hold positions and fetched records without I/O, `group` and `heartbeats` are its part in a group. `ranges`
reads from here to there and is done; `arrow` hands columns to pyarrow. Nothing is imported by the package itself, so a
caller pays for what it uses.
"""
