"""Fetches of megabytes over TLS, by a quick reader and by one that stops reading for a while."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from ixion.testing import Broker
from tests.security.certificates import Authority

COUNT, SIZE = 400, 50_000


@pytest.mark.parametrize("queued_kb", ["64", "1048576"])
def test_megabytes_arrive_whole(tmp_path: Path, queued_kb: str) -> None:
    authority = Authority(tmp_path)
    pem = authority.sign("broker", "/CN=broker")
    settings = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL", "ssl.keystore.location": pem}
    with Broker(settings) as broker:
        broker.create_topic("t")
        client = {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SSL",
            "ssl.ca.location": str(authority.certificate),
        }
        producer = Producer(client)
        for number in range(COUNT):
            producer.produce("t", number.to_bytes(4, "big") * (SIZE // 4))
            producer.poll(0)
        assert producer.flush(60) == 0
        # A small queue makes librdkafka stop fetching; it reads the rest of an answer later.
        consumer = Consumer(
            client
            | {"group.id": "g", "auto.offset.reset": "earliest", "queued.max.messages.kbytes": queued_kb}
            | {"fetch.max.bytes": "52428800", "max.partition.fetch.bytes": "20000000"}
        )
        consumer.subscribe(["t"])
        numbers: list[int] = []
        end = time.monotonic() + 90
        while len(numbers) < COUNT and time.monotonic() < end:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                value = message.value() or b""
                assert value == value[:4] * (SIZE // 4)
                numbers.append(int.from_bytes(value[:4], "big"))
        consumer.close()
    assert numbers == list(range(COUNT))
