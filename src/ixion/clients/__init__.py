"""Clients of a broker: what the command line, the tests, other programs and the brokers themselves ask one with.

    from ixion.clients import Consumer, Producer
    from ixion.clients.aio import Producer      # the same, with await in front

`core` decides for connections, metadata and the producer, without I/O. `cluster.Cluster` and `reader.Reader` are an
older blocking client on the same connections; `topics`, `configs`, `offsets` and `groups` administer by it. Nothing is
imported by the package itself, so a caller pays for what it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ixion.clients.consumer.consumer import Consumer
    from ixion.clients.consumer.group import RebalanceListener
    from ixion.clients.metadata import TopicPartition
    from ixion.clients.producer import Producer

__all__ = ["Consumer", "Producer", "RebalanceListener", "TopicPartition"]

_HOMES: Final = {
    "Consumer": "consumer.consumer",
    "Producer": "producer",
    "RebalanceListener": "consumer.group",
    "TopicPartition": "metadata",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
