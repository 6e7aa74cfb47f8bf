"""Produces with another client: `python -m tests.security.reauthenticating NAME`, settings as JSON on standard input.

Prints how many records were acknowledged; goes on for each line that comes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

ROUND = 20  # records between two looks at the broker


def by_kafka_python(settings: dict[str, Any]) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(**settings, retries=100)
    number = 0
    while True:
        for _ in range(ROUND):
            producer.send("kafka-python", b"%d" % number).get(60)
            number += 1
        print(number, flush=True)
        if not sys.stdin.readline():
            return


async def by_aiokafka(settings: dict[str, Any]) -> None:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(**settings)
    await producer.start()
    number = 0
    while True:
        for _ in range(ROUND):
            await asyncio.wait_for(producer.send_and_wait("aiokafka", b"%d" % number), 60)
            number += 1
        print(number, flush=True)
        if not sys.stdin.readline():
            break
    await producer.stop()


def main() -> None:
    settings = json.loads(sys.stdin.readline())
    if sys.argv[1] == "aiokafka":
        asyncio.run(by_aiokafka(settings))
    else:
        by_kafka_python(settings)


if __name__ == "__main__":
    main()
