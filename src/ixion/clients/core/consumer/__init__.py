"""A consumer without sockets, clocks or sleeps.

`subscription` and `buffer` hold positions and fetched records, `fetcher` fills them, `positions` finds where to begin.
`coordinator`, `group` and the two kinds of members (`classic`, `served`) are its part in a group, `commits` reads and
writes the offsets of the group. `machine` holds all of them together; `ixion.clients.consumer` and `ixion.clients.aio`
are the faces that do the I/O.
"""
