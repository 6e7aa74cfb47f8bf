"""A share consumer (KIP-932) without sockets, clocks or sleeps.

Brokers acquire records for a member and lock them for a while; the member acknowledges each record by itself. So there
are no positions, no commits and nothing to revoke.

`member` is the part in the group. `session` is what one broker knows of us, `fetcher` sends the requests of all
sessions, `acquisition` holds the records that were acquired of one partition by one fetch, `portion` their
acknowledgements on the way. `machine` holds all of them together; `ixion.clients.share` and `ixion.clients.aio` are the
faces that do the I/O.
"""
