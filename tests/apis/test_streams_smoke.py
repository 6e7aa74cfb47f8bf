"""Kafka Streams' own smoke test with exactly_once_v2: instances come, go and are killed, Kafka's code verifies.

Once as a classic group, once as a streams group (KIP-1071).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from devtools.jvm import compile_java, run_java
from devtools.parts import need
from ixion.testing import Broker

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="it takes most of a minute: once is enough, compiled"
)

SOURCE = Path(__file__).parent / "java" / "StreamsSmoke.java"
OPTIONS = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
RECORDS_PER_KEY = "100"


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_streams_verifies_its_results(tmp_path: Path, protocol: str) -> None:
    jars = need("streams-4.3.0-test")
    path = f"{compile_java(SOURCE, jars)}:{jars}"
    settings = {
        "group.min.session.timeout.ms": 500,
        "group.streams.min.session.timeout.ms": 3_000,
        "group.streams.session.timeout.ms": 3_000,
        "group.streams.min.heartbeat.interval.ms": 500,
        "group.streams.heartbeat.interval.ms": 500,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
    }
    with Broker(settings) as broker:
        arguments = (RECORDS_PER_KEY, broker.bootstrap, str(tmp_path), protocol)
        said = run_java("StreamsSmoke", *arguments, classpath=path, options=OPTIONS, timeout_s=240)
    assert "\nPASSED\n" in said
