"""Records what real clients and Kafka 4.3 say to each other, as seeds for fuzzing: tests/protocol/captures/*.txt.

    python -m devtools.record_frames

Each client produces, reads as a member of a group, commits, and where it can runs a transaction and some admin calls,
through a proxy that writes down every frame. Of each API, version and direction the first two are kept, one a line:

    request 18 3 0012000300000001...

The hex is a whole frame without its size. A client that fails says so; what it sent before is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from devtools.cache import CHECKOUT
from devtools.jars import classpath
from devtools.jvm import run_java
from devtools.kafka import RealKafka, free_port

CAPTURES = CHECKOUT / "tests" / "protocol" / "captures"
KEPT = 2  # frames of a kind
LARGEST = 4096  # bytes; metrics and long answers teach nothing more


class Proxy:
    """Passes bytes between clients and a broker, and keeps the frames. Ends with the `with` block."""

    def __init__(self, port: int, broker_port: int) -> None:
        self.broker_port = broker_port
        self.frames: dict[tuple[str, int, int], list[bytes]] = {}
        self._listener = socket.create_server(("127.0.0.1", port))
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def take(self) -> list[str]:
        """The lines recorded since the last call."""
        with self._lock:
            frames, self.frames = self.frames, {}
        return [
            f"{direction} {key} {version} {frame.hex()}"
            for (direction, key, version), kept in sorted(frames.items())
            for frame in kept
        ]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(("127.0.0.1", self.broker_port))
                asked: dict[int, tuple[int, int]] = {}
                for source, target, direction in ((client, broker, "request"), (broker, client, "response")):
                    threading.Thread(target=self._pump, args=(source, target, direction, asked), daemon=True).start()

    def _pump(
        self, source: socket.socket, target: socket.socket, direction: str, asked: dict[int, tuple[int, int]]
    ) -> None:
        buffer = bytearray()
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                buffer += data
                while len(buffer) >= 4 and len(buffer) >= 4 + (size := struct.unpack_from(">i", buffer)[0]):
                    self._keep(direction, bytes(buffer[4 : 4 + size]), asked)
                    del buffer[: 4 + size]
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def _keep(self, direction: str, frame: bytes, asked: dict[int, tuple[int, int]]) -> None:
        if direction == "request":
            key, version, correlation = struct.unpack_from(">hhi", frame)
            asked[correlation] = key, version
        else:
            key, version = asked.pop(struct.unpack_from(">i", frame)[0])
        with self._lock:
            kept = self.frames.setdefault((direction, key, version), [])
            if len(kept) < KEPT and len(frame) <= LARGEST:
                kept.append(frame)


def librdkafka(bootstrap: str) -> None:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("rdk", 2, 1)])["rdk"].result(20)
    admin.describe_configs([ConfigResource(ResourceType.TOPIC, "rdk")])
    admin.list_consumer_groups().result(20)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "rdk-t", "compression.type": "lz4"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("rdk", b"value", b"key", headers=[("h", b"1")])
    producer.flush(20)
    producer.commit_transaction(20)
    for protocol in ("classic", "consumer"):
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"rdk-{protocol}",
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["rdk"])
        wait_for(partial(consumer.poll, 1.0))
        consumer.commit(asynchronous=False)
        consumer.close()
    admin.delete_topics(["rdk"])["rdk"].result(20)


def kafka_python(bootstrap: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap)
    producer.send("kpy", b"value", b"key").get(20)
    consumer = KafkaConsumer("kpy", bootstrap_servers=bootstrap, group_id="kpy", auto_offset_reset="earliest")
    wait_for(lambda: consumer.poll(1000))
    consumer.commit()
    consumer.close()
    producer.close()


def aiokafka(bootstrap: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def session() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="aio-t")
        await producer.start()
        async with producer.transaction():
            await producer.send_and_wait("aio", b"value", b"key")
        await producer.stop()
        consumer = AIOKafkaConsumer("aio", bootstrap_servers=bootstrap, group_id="aio", auto_offset_reset="earliest")
        await consumer.start()
        await asyncio.wait_for(consumer.getone(), 20)
        await consumer.commit()
        await consumer.stop()

    asyncio.run(session())


def java(bootstrap: str) -> None:
    jars = classpath("kafka-4.3.0")
    tools = "org.apache.kafka.tools"
    server = ("--bootstrap-server", bootstrap)
    run_java(f"{tools}.TopicCommand", *server, "--create", "--topic", "java", "--partitions", "3", classpath=jars)
    run_java(f"{tools}.TopicCommand", *server, "--describe", classpath=jars)
    load = ("--topic", "java", "--num-records", "20", "--record-size", "50", "--throughput", "-1")
    settings = ("--producer-props", f"bootstrap.servers={bootstrap}", "transactional.id=java-t")
    run_java(f"{tools}.ProducerPerformance", *load, *settings, classpath=jars)
    for protocol in ("classic", "consumer"):
        run_java(
            f"{tools}.consumer.ConsoleConsumer",
            *(*server, "--topic", "java", "--from-beginning", "--max-messages", "20", "--group", f"java-{protocol}"),
            *("--consumer-property", f"group.protocol={protocol}", "--isolation-level", "read_committed"),
            classpath=jars,
        )
    run_java(f"{tools}.consumer.group.ConsumerGroupCommand", *server, "--describe", "--all-groups", classpath=jars)


def wait_for(poll: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not poll():
        if time.monotonic() > end:
            raise TimeoutError("nothing arrived")


def main() -> None:
    CAPTURES.mkdir(exist_ok=True)
    proxy_port = free_port()
    settings = {
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy_port}",
        "transaction.state.log.num.partitions": "1",
        "offsets.topic.num.partitions": "1",
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        RealKafka("4.3.0", Path(folder), properties=settings) as kafka,
        Proxy(proxy_port, kafka.port) as proxy,
    ):
        for client in (librdkafka, kafka_python, aiokafka, java):
            try:
                client(f"127.0.0.1:{proxy_port}")
            except Exception as error:
                print(f"{client.__name__}: {error!r}")
            lines = proxy.take()
            (CAPTURES / f"{client.__name__}.txt").write_text("\n".join(lines) + "\n")
            print(f"{client.__name__}: {len(lines)} frames")


if __name__ == "__main__":
    main()
