"""librdkafka loses the answer to a transactional batch and aborts: the next transaction must not vanish.

It takes the sequence numbers of the lost batch again. A broker that answers as to a duplicate acknowledges the records
with the offsets of aborted ones, and no consumer ever reads them.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from struct import unpack_from

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker

RECORDS = [b"record %d" % number for number in range(10)]


def receive(end: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = end.recv(count - len(data))
        if not more:
            raise OSError("the connection has ended")
        data += more
    return data


def frame_from(end: socket.socket) -> bytes:
    size = receive(end, 4)
    return size + receive(end, int(unpack_from(">i", size)[0]))


class Proxy:
    """Ends the connection instead of forwarding the next answer to a Produce, once `lose_next` was called."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._armed = False
        self.lost = threading.Event()
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def lose_next(self) -> None:
        self._armed = True

    def start(self, bootstrap: str) -> None:
        host, port = bootstrap.split(":")
        self._run(self._accept, (host, int(port)))

    def close(self) -> None:
        end_both(self._server, *self._ends)
        for thread in list(self._threads):
            thread.join(10)
        for end in (self._server, *self._ends):
            end.close()

    def _run(self, function: Callable[..., None], *args: object) -> None:
        self._threads.append(threading.Thread(target=function, args=args, daemon=True))
        self._threads[-1].start()

    def _accept(self, target: tuple[str, int]) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self._ends.append(client)
                broker = socket.create_connection(target)
                self._ends.append(broker)
                produces: set[int] = set()
                self._run(self._requests, client, broker, produces)
                self._run(self._answers, client, broker, produces)

    def _requests(self, client: socket.socket, broker: socket.socket, produces: set[int]) -> None:
        with suppress(OSError):
            while True:
                frame = frame_from(client)
                key, _version, correlation = unpack_from(">hhi", frame, 4)
                if key == ApiKey.PRODUCE:
                    produces.add(correlation)
                broker.sendall(frame)
        end_both(client, broker)

    def _answers(self, client: socket.socket, broker: socket.socket, produces: set[int]) -> None:
        with suppress(OSError):
            while True:
                frame = frame_from(broker)
                if self._armed and unpack_from(">i", frame, 4)[0] in produces:
                    self._armed = False
                    self.lost.set()
                    break
                client.sendall(frame)
        end_both(client, broker)


def end_both(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def produce_all(producer: Producer) -> None:
    producer.begin_transaction()
    for value in RECORDS:
        producer.produce("t", value)


def poll(producer: Producer, done: threading.Event) -> None:
    """An abort waits until all delivery reports were taken."""
    while not done.is_set():
        producer.poll(0.05)


def commits(producer: Producer) -> bool:
    """False if the transaction must be aborted, and was."""
    produce_all(producer)
    try:
        producer.commit_transaction(60)
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        producer.abort_transaction(60)
        return False
    return True


def read_committed(bootstrap: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[bytes | None] = []
    end = time.monotonic() + 20
    while len(found) < count and time.monotonic() < end:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(message.value())
    consumer.close()
    return found


def test_the_transaction_after_a_lost_answer_and_an_abort() -> None:
    proxy = Proxy()
    with Broker(settings={"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
        broker.create_topic("t")
        proxy.start(broker.bootstrap)
        producer = Producer(
            {"bootstrap.servers": proxy.address, "transactional.id": "x", "linger.ms": 50, "retry.backoff.ms": 1000}
        )
        done = threading.Event()
        polling = threading.Thread(target=poll, args=(producer, done))
        polling.start()
        producer.init_transactions(60)
        proxy.lose_next()
        produce_all(producer)
        assert proxy.lost.wait(60)
        time.sleep(
            0.3
        )  # librdkafka waits a second before it retries; if it aborts before it noticed the loss, it hangs
        producer.abort_transaction(60)

        # If librdkafka was quick, it has repeated the batch before it aborted, and nothing is refused.
        if not commits(producer):
            assert commits(producer)
        assert read_committed(proxy.address, len(RECORDS)) == RECORDS
        done.set()
        polling.join()
        del producer
        proxy.close()
