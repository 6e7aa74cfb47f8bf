"""Clients of a broker, for the command line, the tests, other programs and the brokers themselves.

    from ixion.clients import Admin, Consumer, Producer
    from ixion.clients.aio import Consumer      # the same names, with await

`core` decides for connections, metadata, the producer and the consumer, without I/O; `admin` administers.
`cluster.Cluster` and `reader.Reader` are an older blocking client on the same connections. The package itself imports
nothing, so a caller imports only what it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ixion.clients.admin.admin import Admin
    from ixion.clients.consumer.consumer import Consumer
    from ixion.clients.consumer.listener import RebalanceListener
    from ixion.clients.metadata import TopicPartition
    from ixion.clients.producer import Producer

__all__ = ["Admin", "Consumer", "Producer", "RebalanceListener", "TopicPartition"]

_HOMES: Final = {
    "Admin": "admin.admin",
    "Consumer": "consumer.consumer",
    "Producer": "producer",
    "RebalanceListener": "consumer.listener",
    "TopicPartition": "metadata",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
