"""The consumers.

`consumer.Consumer` is the blocking face of `ixion.clients.core.consumer`: it reads partitions, alone or in a group, for
as long as it is polled. `ranges` reads ranges of offsets and ends; `arrow` hands columns to pyarrow. The package itself
imports nothing, so a caller imports only what it uses.
"""
