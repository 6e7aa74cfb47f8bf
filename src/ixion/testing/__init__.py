"""A whole broker inside a test or a script.

    with ixion.testing.Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

    with ixion.testing.Cluster(3) as cluster:
        cluster.create_topic("orders")
        cluster.kill(cluster.leader("orders"))

It is the real broker, on an event loop of its own in a thread, with its data in a temporary directory. For pytest there
is `plugin`, which every run of pytest loads, so nothing is imported here before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ixion.testing.broker import Broker
    from ixion.testing.cluster import Cluster

__all__ = ["Broker", "Cluster"]


def __getattr__(name: str) -> object:
    if name == "Broker":
        from ixion.testing.broker import Broker

        return Broker
    if name == "Cluster":
        from ixion.testing.cluster import Cluster

        return Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
