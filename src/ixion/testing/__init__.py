"""A whole broker inside a test or a script.

    with ixion.testing.Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

It is the real one, on an event loop of its own in a thread, with its data in a temporary directory. For pytest there is
`plugin`, which every run of pytest loads: so nothing is imported here before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ixion.testing.broker import Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> object:
    if name == "Broker":
        from ixion.testing.broker import Broker

        return Broker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
