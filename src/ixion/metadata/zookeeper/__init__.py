"""The ZooKeeper engine: a small client of our own, without I/O in its core.

Read `machine.py` first. `jute.py` is ZooKeeper's serialisation, `packets.py` the requests and answers made of it,
`ensemble.py` the connect string, `session.py` the machine on an event loop, behind `ixion.metadata.session`.

kazoo was measured against a thin client on the loop: 300 to 670 µs of processor time a request against 8 to 25 µs, and
it forgets its watches when it reconnects. It is the other side in our tests instead.
"""
