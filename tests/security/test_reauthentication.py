"""Other clients authenticate again, or connect again, while they produce (KIP-368): nothing is lost or reordered."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer as ConfluentProducer

from ixion.clients import Consumer, TopicPartition
from tests.broker.served import environment
from tests.security.secured import Secured, count_logins

LOGINS = 6
PATIENCE_S = 120


def test_sessions_end_under_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logins = count_logins(monkeypatch)
    secured = Secured(tmp_path, {"connections.max.reauth.ms": "200"})
    acknowledged: dict[str, int] = {}
    with secured.broker as broker:
        for topic in ("librdkafka", "kafka-python", "aiokafka"):
            broker.create_topic(topic)
        secured.add_user("sue", "s-secret", 2)
        address = secured.address("SASL_PLAINTEXT")
        deadline = time.monotonic() + PATIENCE_S

        def over(user: str) -> bool:
            assert time.monotonic() < deadline, logins
            return logins[f"User:{user}"] >= LOGINS

        for client, user, mechanism, password in (
            ("kafka-python", "bob", "PLAIN", "b-secret"),
            ("aiokafka", "sue", "SCRAM-SHA-512", "s-secret"),
        ):
            login = {"sasl_mechanism": mechanism, "sasl_plain_username": user, "sasl_plain_password": password}
            settings = {"bootstrap_servers": address, "security_protocol": "SASL_PLAINTEXT", **login}
            with subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "tests.security.reauthenticating", client],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environment(),
            ) as process:
                assert process.stdin is not None
                assert process.stdout is not None
                print(json.dumps(settings), file=process.stdin, flush=True)
                while True:
                    acknowledged[client] = int(process.stdout.readline())
                    if over(user):
                        break
                    print(file=process.stdin, flush=True)

        options = secured.options("SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_username="alice")
        producer = ConfluentProducer(
            options | {"sasl.password": "a-secret", "enable.idempotence": True, "log_level": 0}
        )
        while not over("alice"):
            for _ in range(20):
                producer.produce("librdkafka", b"%d" % acknowledged.setdefault("librdkafka", 0))
                acknowledged["librdkafka"] += 1
            assert producer.flush(60) == 0
        for topic, count in acknowledged.items():
            with Consumer(broker.bootstrap, auto_offset_reset="earliest") as consumer:
                consumer.assign([TopicPartition(topic, 0)])
                found: list[bytes] = []
                while len(dict.fromkeys(found)) < count:
                    found += [bytes(record.value or b"") for record in consumer.poll(60)]
            assert list(dict.fromkeys(found)) == [b"%d" % number for number in range(count)], topic
