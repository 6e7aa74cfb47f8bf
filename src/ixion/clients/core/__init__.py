"""The core of every client, without sockets, clocks or sleeps: time and random numbers are arguments.

`connection` is one connection, `cluster` the known state of the cluster, `client` decides which broker gets a request
and when it is repeated. Shells around them (`ixion.clients.line`, and the two faces of each client) do the I/O.
"""

# The modules of this package are compiled: see setup.py.
