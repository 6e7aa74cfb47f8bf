"""What clients see of a secured broker: logins a second, and the rate that a quota leaves them. Each is called in a
process of its own."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from ixion.language.protocol.envelope import decode_response, frame_request
from ixion.language.protocol.headers import RequestHeader
from ixion.language.protocol.messages.k17_sasl_handshake import SaslHandshakeRequest
from ixion.language.protocol.messages.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ixion.language.protocol.notation import Struct
from ixion.language.sasl.scram_client import ScramClient, ScramUser

WARM = 20  # logins that are not counted
BURST_S = 3.0  # after which a throttled client has used up what it may have at once
BATCH = 16_384


def logins(port: int, mechanism: str, user: str, password: str, count: int) -> float:
    """Connections that log in by SCRAM, one after the other: how many a second. The client derives its key once."""
    known = ScramUser(mechanism, user, password)
    for _ in range(WARM):
        login(port, known)
    begun = time.perf_counter()
    for _ in range(count):
        login(port, known)
    return count / (time.perf_counter() - begun)


def login(port: int, user: ScramUser) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ask(wire, 17, 1, SaslHandshakeRequest(mechanism=user.mechanism))
        client = ScramClient(user)
        message: bytes | None = client.first()
        while message is not None:
            answer = ask(wire, 36, 1, SaslAuthenticateRequest(auth_bytes=message))
            assert isinstance(answer, SaslAuthenticateResponse)
            assert answer.error_code == 0, answer.error_message
            message = client.step(bytes(answer.auth_bytes))


def ask(wire: socket.socket, key: int, version: int, body: Struct) -> Struct:
    header = RequestHeader(api_key=key, api_version=version, correlation_id=1, client_id="bench")
    wire.sendall(b"".join(bytes(part) for part in frame_request(header, body)))
    (size,) = struct.unpack(">i", wire.recv(4, socket.MSG_WAITALL))
    return decode_response(key, version, wire.recv(size, socket.MSG_WAITALL))[1]


def throttled_produce(bootstrap: str, topic: str, client_id: str, seconds: float) -> float:
    """Bytes a second that are acknowledged once the burst is over, of a producer that always has more."""
    done: list[tuple[float, int]] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "batch.size": BATCH,
            "linger.ms": 5,
            "message.timeout.ms": 300_000,
            "queue.buffering.max.messages": 10_000,
        }
    )

    def delivered(error: object, message: Message) -> None:
        if error is None:
            done.append((time.perf_counter(), len(message)))

    value = os.urandom(1_000)
    end = time.perf_counter() + BURST_S + seconds
    while time.perf_counter() < end:
        try:
            producer.produce(topic, value, partition=0, on_delivery=delivered)
        except BufferError:
            producer.poll(0.01)
        producer.poll(0)
    rate = steady(done, end - seconds)
    producer.purge()
    producer.flush(1)
    return rate


def throttled_consume(bootstrap: str, topic: str, client_id: str, seconds: float) -> float:
    """Bytes a second that arrive once the burst is over."""
    options: Mapping[str, str | int] = {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "group.id": "bench",
        "fetch.message.max.bytes": BATCH,
        "fetch.max.bytes": BATCH,
        "message.max.bytes": BATCH,
        "queued.max.messages.kbytes": 1_024,
    }
    consumer = Consumer(dict(options))
    consumer.assign([TopicPartition(topic, 0, 0)])
    done: list[tuple[float, int]] = []
    end = time.perf_counter() + BURST_S + seconds
    while time.perf_counter() < end:
        message = consumer.poll(0.1)
        if message is not None and not message.error():
            done.append((time.perf_counter(), len(message)))
    consumer.close()
    return steady(done, end - seconds)


def steady(done: list[tuple[float, int]], since: float) -> float:
    """The rate between the first and the last arrival since that time."""
    late = [each for each in done if each[0] >= since]
    return sum(size for _, size in late[1:]) / (late[-1][0] - late[0][0])
