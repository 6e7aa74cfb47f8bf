"""The clients on asyncio: the names of `ixion.clients`, with await in front.

async with Producer("127.0.0.1:9092") as producer:
    future = await producer.send("orders", b"value")
    await future
"""

from __future__ import annotations

from ixion.clients.aio.producer import DeliveryFuture, Producer

__all__ = ["DeliveryFuture", "Producer"]
