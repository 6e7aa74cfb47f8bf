"""Java's own clients, 3.9 and 4.3: each codec both ways, every acks, seeking, times, waiting, and Kafka's own tools."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from devtools.jvm import compile_java, run_java, tool
from devtools.parts import need
from ixion.testing import Broker
from tests.real_clients.drivers import CODECS, DRIVERS, Message

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted",
    reason="a JVM takes seconds: once is enough, compiled",
)

SOURCE = Path(__file__).parent / "java" / "PlainClients.java"
NOW = 1_700_000_000_000
FROM_PYTHON = [
    Message(b"key", b"value", (("a", b"1"), ("a", b"2")), NOW),
    Message(None, b"no key", (), NOW + 1),
    Message(b"no value", None, (), NOW + 2),
    Message(b"", b"", (), NOW + 3),
    Message("schlüssel".encode(), b"wert", (("k", "ä".encode()),), NOW + 4),
    Message(b"large", b"x" * 100_000, (), NOW + 5),
]
HEADERS = (("a", b"1"), ("a", b"2"), ("none", None))
FROM_JAVA = [
    Message(b"key", b"value", HEADERS, NOW),
    Message(None, b"no key", HEADERS, NOW + 1),
    Message(b"no value", None, HEADERS, NOW + 2),
    Message(b"", b"", HEADERS, NOW + 3),
    Message(b"large", b"x" * 100_000, HEADERS, NOW + 4),
]
SEEN = "key=value@0 a:1 a:2; null=no key@1; no value=null@2; =@3; schlüssel=wert@4 k:ä; large=100000 bytes@5;"
EXPECTED = [
    *(f"{codec} {SEEN}" for codec in CODECS),
    "ends 0 5",
    "at time 2 2 true",
    "too late null",
    "partitions 1",
    "middle =@3 a:1 a:2 none:null;",
    "waited for k=late@0;",
    "too large RecordTooLargeException",
    "then 0",
]


@pytest.mark.parametrize("clients", ["clients-3.9.1", "clients-4.3.0"])
def test_an_application(clients: str) -> None:
    jars = need(clients)
    classes = compile_java(SOURCE, jars)
    with Broker() as broker:
        broker.create_topic("java-tight", max_message_bytes=1000)
        for name in [f"java-{codec}" for codec in CODECS] + [f"java-acks-{acks}" for acks in ("0", "1", "all")]:
            broker.create_topic(name)
        broker.create_topic("java-late")
        for number, codec in enumerate(CODECS):
            DRIVERS[number % 3].produce(broker.bootstrap, f"python-{codec}", FROM_PYTHON, codec=codec)
        said = run_java(
            "PlainClients",
            broker.bootstrap,
            classpath=f"{classes}:{jars}",
            options=["-Xmx256m", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8"],
            timeout_s=120,
        )
        assert said.splitlines() == EXPECTED
        for number, codec in enumerate(CODECS):
            reader = DRIVERS[(number + 1) % 3]
            assert reader.read(broker.bootstrap, f"java-{codec}", 0, len(FROM_JAVA)) == FROM_JAVA
        for acks in ("0", "1", "all"):
            assert DRIVERS[0].read(broker.bootstrap, f"java-acks-{acks}", 0, len(FROM_JAVA)) == FROM_JAVA


def test_kafkas_own_tools() -> None:
    """ProducerPerformance writes, the console consumer reads by partition, GetOffsetShell counts."""
    jars = need("kafka-4.3.0")

    def run(main: str, *arguments: str) -> str:
        command = [tool("java"), "-Xmx256m", "-cp", jars, main, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with Broker() as broker:
        broker.create_topic("perf", 2)
        said = run(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", "perf", "--num-records", "5000", "--record-size", "100", "--throughput", "-1"),
            *("--producer-props", f"bootstrap.servers={broker.bootstrap}", "acks=all", "compression.type=lz4"),
        )
        assert "5000 records sent" in said
        said = run("org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", broker.bootstrap, "--topic", "perf")
        counts = [int(line.rpartition(":")[2]) for line in said.split()]
        assert sum(counts) == 5000
        place = counts.index(max(counts))
        said = run(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", broker.bootstrap, "--topic", "perf", "--partition", str(place), "--offset", "0"),
            *("--max-messages", "10", "--timeout-ms", "20000"),
        )
        assert [len(line) for line in said.split()] == [100] * 10
