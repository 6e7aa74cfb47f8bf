"""The ZooKeeper engine: our own small client, without I/O in its core.

Read `machine.py` first. `jute.py` is ZooKeeper's serialisation, `packets.py` the requests and responses,
`ensemble.py` the connect string, `session.py` runs the machine on an event loop, with the interface of
`ixion.broker.metadata.session`.

We measured kazoo against a thin client on the loop: 300 to 670 µs of processor time per request instead of 8 to 25 µs.
It also loses its watches when it reconnects. Our tests use it to check our server.
"""
