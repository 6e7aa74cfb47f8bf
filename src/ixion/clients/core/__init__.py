"""What every client shares, without sockets, clocks or sleeps: time and random numbers are arguments.

`connection` is one connection, `cluster` what is known of the cluster, `client` decides which broker is asked, and when
it is asked again. Shells around them (`ixion.clients.line`, and the two faces of each client) do the I/O.
"""
