"""Clients of a broker: what the command line, the tests, other programs and the brokers themselves ask one with.

    from ixion.clients import Consumer

Within, start with `cluster.Cluster` (where everything lives), `producer.Producer` and `reader.Reader`; `topics`,
`configs`, `offsets` and `groups` administer. One object belongs to one thread; only a consumer in a group starts one,
for its heartbeats. Nothing is imported by the package itself, so a caller pays for what it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ixion.clients.consumer.consumer import Consumer
    from ixion.clients.consumer.group import RebalanceListener
    from ixion.clients.metadata import TopicPartition

__all__ = ["Consumer", "RebalanceListener", "TopicPartition"]

_HOMES: Final = {"Consumer": "consumer.consumer", "RebalanceListener": "consumer.group", "TopicPartition": "metadata"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
