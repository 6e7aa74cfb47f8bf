"""Certificates and passwords are replaced while a producer writes: no record is lost, none comes twice."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ixion.clients import Consumer, Producer, TopicPartition
from tests.security.secured import Secured

RECORDS = 400


def test_rotation_without_a_lost_record(tmp_path: Path) -> None:
    secured = Secured(tmp_path, {"connections.max.reauth.ms": "2000"})
    store = secured.pem
    others = [secured.authority.sign(f"next-{number}", "/O=ixion/CN=broker") for number in range(3)]

    async def close_all(real: Any) -> None:
        for processor in real.parts.server._processors():
            for connection in list(processor.connections.values()):
                if connection.listener == "SASL_SSL":
                    connection.close("test")

    with secured.broker as broker:
        broker.create_topic("t")
        secured.add_user("rob", "old", 2)
        options: dict[str, Any] = {
            "security_protocol": "SASL_SSL",
            "ssl_truststore_location": str(secured.authority.certificate),
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": "rob",
        }
        address = secured.address("SASL_SSL")
        with Producer(address, sasl_password="old", **options) as producer:
            for number in range(RECORDS):
                producer.send("t", value=b"%d" % number)
                if number % 50 == 25:
                    shutil.copyfile(others[number // 50 % len(others)], store)
                if number % 50 == 40:
                    broker.call(close_all)  # the next connection sees the new certificate
                if number % 10 == 0:
                    producer.flush()
            producer.flush()
        secured.add_user("rob", "new", 2)
        with Consumer(address, sasl_password="new", auto_offset_reset="earliest", **options) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            found: list[bytes] = []
            while len(found) < RECORDS:
                found += [bytes(record.value or b"") for record in consumer.poll(60)]
        assert found == [b"%d" % number for number in range(RECORDS)]
