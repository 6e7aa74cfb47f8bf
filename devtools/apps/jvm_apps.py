"""Applications on the JVM that are long-running services: started, watched until their work is done, ended."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer

from devtools import jars
from devtools.apps.app import TIMEOUT_S
from devtools.jvm import QUICK, compile_java, java_command, run_java
from ixion.testing import Broker


@contextmanager
def service(
    main: str, *arguments: str, classpath: str, folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Callable[[], None]]:
    """Runs until the block ends; the value it gives fails if the service has ended before."""
    output = folder / f"{main.rpartition('.')[2]}.out"
    with output.open("wb") as out:
        command = java_command(main, *arguments, classpath=classpath, options=[*QUICK, "-Xmx512m"])
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=out)

    def check() -> None:
        if process.poll() is not None:
            raise RuntimeError(f"{main} ended with {process.returncode}: {output.read_text()[-2000:]}")

    try:
        yield check
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(is_done: Callable[[], bool], check: Callable[[], None]) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not is_done():
        check()
        if time.monotonic() > end:
            raise RuntimeError(f"not done after {TIMEOUT_S:.0f} s")
        time.sleep(0.2)


def settings(path: Path, values: dict[str, str]) -> str:
    path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    return str(path)


def connect(bootstrap: str, folder: Path) -> None:
    """A file goes into a topic by one connector and out of it into another file by a second one."""
    lines = [f"line {number}" for number in range(100)]
    (folder / "in.txt").write_text("\n".join(lines) + "\n")
    converter = "org.apache.kafka.connect.storage.StringConverter"
    worker = {
        "bootstrap.servers": bootstrap,
        "key.converter": converter,
        "value.converter": converter,
        "offset.storage.file.filename": str(folder / "offsets"),
        "offset.flush.interval.ms": "500",
        "listeners": "http://127.0.0.1:0",
    }
    source = {
        "name": "source",
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "file": str(folder / "in.txt"),
        "topic": "connect",
    }
    sink = {
        "name": "sink",
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "file": str(folder / "out.txt"),
        "topics": "connect",
    }
    files = [
        settings(folder / f"{name}.properties", values)
        for name, values in (("worker", worker), ("source", source), ("sink", sink))
    ]
    copied = folder / "out.txt"
    classpath = jars.classpath("connect-4.3.0")
    with service("org.apache.kafka.connect.cli.ConnectStandalone", *files, classpath=classpath, folder=folder) as check:
        until(lambda: copied.exists() and copied.read_text().splitlines() == lines, check)


def word_count(bootstrap: str, folder: Path, protocol: str = "classic") -> None:
    """Kafka Streams counts words into a state store, exactly once; a second life restores the store."""
    jar = jars.classpath("streams-4.3.0")
    classes = compile_java(Path(__file__).parent / "java" / "WordCount.java", jar)
    words = (bootstrap, str(folder), protocol)
    print(run_java("WordCount", *words, classpath=f"{classes}:{jar}", timeout_s=TIMEOUT_S).strip())


def mirror_maker(bootstrap: str, folder: Path) -> None:
    """MirrorMaker 2 copies a topic to a second broker, an ixion of our own, and another topic back."""
    with Broker() as second:
        for place, topic in ((bootstrap, "there"), (second.bootstrap, "back")):
            producer = Producer({"bootstrap.servers": place})
            for number in range(50):
                producer.produce(topic, str(number).encode())
            if producer.flush(30):
                raise RuntimeError(f"{place} took no records")
            del producer  # it would complain when its broker stops
        values = {
            "clusters": "a, b",
            "a.bootstrap.servers": bootstrap,
            "b.bootstrap.servers": second.bootstrap,
            "a->b.enabled": "true",
            "a->b.topics": "there",
            "b->a.enabled": "true",
            "b->a.topics": "back",
            "replication.factor": "1",
            "refresh.topics.interval.seconds": "5",
            "sync.topic.acls.enabled": "true",  # asked for every interval; no authorizer is not an error
            "dedicated.mode.enable.internal.rest": "false",
            **{f"{kind}.storage.replication.factor": "1" for kind in ("offset", "config", "status")},
            **{f"{kind}.topic.replication.factor": "1" for kind in ("checkpoints", "heartbeats", "offset-syncs")},
        }
        file = settings(folder / "mm2.properties", values)
        classpath = jars.classpath("connect-4.3.0")
        with service("org.apache.kafka.connect.mirror.MirrorMaker", file, classpath=classpath, folder=folder) as check:
            until_copied(second.bootstrap, "a.there", check)
            until_copied(bootstrap, "b.back", check)


def until_copied(bootstrap: str, topic: str, check: Callable[[], None]) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: set[bytes] = set()

    def copied() -> bool:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            found.add(message.value() or b"")
        return len(found) == 50

    try:
        until(copied, check)
    finally:
        consumer.close()
