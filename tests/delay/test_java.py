"""A13 and A14 with the unmodified Java client: over holes, and "try again later" in one transaction."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from devtools.jvm import compile_java, run_java
from devtools.parts import need
from ixion.testing import Broker

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted" and not os.environ.get("IXION_JVM"),
    reason="a JVM takes seconds: once is enough, compiled",
)
SOURCE = Path(__file__).parent / "java" / "Later.java"
RECORD: dict[str, Any] = {"delivery.delay.mode": "record"}


def test_a14_the_java_client_reads_over_holes_and_sends_back_for_later_in_a_transaction() -> None:
    jars = need("clients-3.9.1")
    classes = compile_java(SOURCE, jars)
    with Broker() as broker:
        for topic in ("java-holes", "java-jobs"):
            broker.create_topic(topic, 1, **RECORD)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for value in (b"", b"", b"first", b"", b"second", b"", b""):
            headers: dict[str, Any] = {} if value else {"x-deliver-after-ms": "3600000"}
            producer.produce("java-holes", value, headers=headers)
            assert producer.flush(60) == 0
        said = run_java("Later", broker.bootstrap, classpath=f"{classes}:{jars}", options=["-Xmx256m"], timeout_s=180)
    lines = [line for line in said.splitlines() if not line.startswith("SLF4J")]
    assert lines == ["first@2 second@4 position 7 lag 0", "pay again, attempts 1, early false", "committed 1"]
