"""The same by Java's own clients: 3.9, which announces partitions, and 4.3, whose writes add them (KIP-890)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from devtools.jvm import compile_java, run_java
from devtools.parts import need
from ixion.testing import Broker

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted",
    reason="a JVM takes seconds: once is enough, compiled",
)

SOURCE = Path(__file__).parent / "java" / "Transactions.java"
OPTIONS = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
EXPECTED = """\
committed 30 [0, 2, 4]
copied 30 aborted 1 metadata so far
copies 30 30
zombie ProducerFencedException
after fencing [of the heir]
slow ProducerFencedException
in the end 31
"""


@pytest.mark.parametrize("clients", ["clients-3.9.1", "clients-4.3.0"])
def test_an_application(clients: str) -> None:
    jars = need(clients)
    classes = compile_java(SOURCE, jars)
    with Broker({"transaction.abort.timed.out.transaction.cleanup.interval.ms": 50}) as broker:
        broker.create_topic("in")
        broker.create_topic("out")
        said = run_java("Transactions", broker.bootstrap, classpath=f"{classes}:{jars}", options=OPTIONS, timeout_s=120)
    assert said == EXPECTED
