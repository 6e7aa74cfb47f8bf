"""A whole broker inside a test or a script.

    with ixion.testing.Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

It is the real one, on an event loop of its own in a thread, with its data in a temporary directory.
"""

from ixion.testing.broker import Broker

__all__ = ["Broker"]
