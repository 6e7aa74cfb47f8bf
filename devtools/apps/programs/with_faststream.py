"""A FastStream application: one handler reads a topic and publishes to another, whose handler counts."""

import asyncio
import os

from faststream import FastStream
from faststream.kafka import KafkaBroker

broker = KafkaBroker(os.environ["BOOTSTRAP"])
app = FastStream(broker)
doubled: list[int] = []


@broker.subscriber("faststream-in", group_id="faststream", auto_offset_reset="earliest")
@broker.publisher("faststream-out")
async def double(number: int) -> int:
    return 2 * number


@broker.subscriber("faststream-out", group_id="faststream-out", auto_offset_reset="earliest")
async def collect(number: int) -> None:
    doubled.append(number)
    if len(doubled) == 20:
        app.exit()


@app.after_startup
async def send() -> None:
    for number in range(20):
        await broker.publish(number, "faststream-in")


asyncio.run(asyncio.wait_for(app.run(), 120))
assert sorted(doubled) == [2 * number for number in range(20)], doubled
