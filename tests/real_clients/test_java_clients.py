"""Java's own clients, 3.9 and 4.3: each codec both ways, every acks, seeking, times, waiting; the console consumer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from devtools.jvm import compile_java, run_java
from devtools.parts import need
from ixion.testing import Broker
from tests.real_clients.drivers import CODECS, DRIVERS, Message
from tests.real_clients.toolbox import TOOLS, ToolBox

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted",
    reason="a JVM takes seconds: once is enough, compiled",
)

SOURCE = Path(__file__).parent / "java" / "PlainClients.java"
OPTIONS = [
    *("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    *("-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8"),
]
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
            options=OPTIONS,
            timeout_s=120,
        )
        assert said.splitlines() == EXPECTED
        for number, codec in enumerate(CODECS):
            reader = DRIVERS[(number + 1) % 3]
            assert reader.read(broker.bootstrap, f"java-{codec}", 0, len(FROM_JAVA)) == FROM_JAVA
        for acks in ("0", "1", "all"):
            assert DRIVERS[0].read(broker.bootstrap, f"java-acks-{acks}", 0, len(FROM_JAVA)) == FROM_JAVA


def test_kafkas_console_consumer(box: ToolBox) -> None:
    with Broker() as broker:
        broker.create_topic("t", 2)
        DRIVERS[0].produce(broker.bootstrap, "t", [Message(b"k", b"value %d" % number) for number in range(20)])
        code, said = box.run(
            f"{TOOLS}consumer.ConsoleConsumer",
            *("--bootstrap-server", broker.bootstrap, "--topic", "t", "--partition", "0", "--offset", "5"),
            *("--max-messages", "10", "--timeout-ms", "20000"),
        )
    assert code == 0
    assert [line for line in said.splitlines() if line.startswith("value")] == [f"value {n}" for n in range(5, 15)]
