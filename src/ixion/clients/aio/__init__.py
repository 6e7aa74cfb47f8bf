"""The clients on asyncio: the same names as in `ixion.clients`, with await.

async with Producer("127.0.0.1:9092") as producer:
    future = await producer.send("orders", b"value")
    await future

async with Consumer("127.0.0.1:9092", group="billing", topics=["orders"]) as consumer:
    async for record in consumer:
        print(record.value)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ixion.clients.aio.admin import Admin
    from ixion.clients.aio.consumer import Consumer
    from ixion.clients.aio.producer import DeliveryFuture, Producer
    from ixion.clients.aio.share import AcknowledgementFuture, ShareConsumer

__all__ = ["AcknowledgementFuture", "Admin", "Consumer", "DeliveryFuture", "Producer", "ShareConsumer"]

_HOMES: Final = {
    "AcknowledgementFuture": "share",
    "Admin": "admin",
    "Consumer": "consumer",
    "DeliveryFuture": "producer",
    "Producer": "producer",
    "ShareConsumer": "share",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
