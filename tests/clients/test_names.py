"""Host names: a resolver that knows none, and one that does not answer, on both faces."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ixion.clients import Admin, Consumer, Producer, TopicPartition, aio
from ixion.clients.faults import TimedOutError, UnreachableError
from tests.clients.fake import FakeCluster

pytestmark = pytest.mark.timeout(120)
REAL = socket.getaddrinfo
WRONG = "there is no host 'nowhere.invalid'"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own resolver may take its time, or invent an address."""

    def fail(host: Any, *rest: Any, **more: Any) -> Any:
        if host == "nowhere.invalid":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return REAL(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", fail)


def test_an_unknown_host_name_is_reported() -> None:
    with Producer("nowhere.invalid:9092", max_block_ms=200) as producer, pytest.raises(TimedOutError, match=WRONG):
        producer.send("orders", b"x")
    with Admin("nowhere.invalid:9092") as admin, pytest.raises(UnreachableError, match=WRONG):
        admin.list_topics()
    with Consumer("nowhere.invalid:9092", default_api_timeout_ms=200) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        assert consumer.poll(0.1) == []
        assert WRONG in str(consumer.trouble)
        with pytest.raises(TimedOutError, match=WRONG):
            consumer.end_offsets([TopicPartition("orders", 0)])


def test_an_unknown_host_name_is_reported_on_a_loop() -> None:
    async def work() -> None:
        async with aio.Producer("nowhere.invalid:9092", max_block_ms=200) as producer:
            with pytest.raises(TimedOutError, match=WRONG):
                await producer.send("orders", b"x")
        async with aio.Admin("nowhere.invalid:9092") as admin:
            with pytest.raises(UnreachableError, match=WRONG):
                await admin.list_topics()

    asyncio.run(asyncio.wait_for(work(), 60))


class Resolver:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.may_answer = threading.Event()

    def look_up(self, host: Any, *rest: Any, **more: Any) -> Any:
        if host == "slow.invalid":
            self.asked.set()
            self.may_answer.wait(100)
            host = "127.0.0.1"
        return REAL(host, *rest, **more)


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    made = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", made.look_up)
    yield made
    made.may_answer.set()


def test_while_a_name_is_looked_up_other_threads_go_on(resolver: Resolver) -> None:
    """The resolver once held the lock of the client: for half a minute nothing else could be done, not even close."""
    failed: list[BaseException] = []
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        port = fakes.bootstrap.rpartition(":")[2]
        producer = Producer(f"slow.invalid:{port}", max_block_ms=60_000)

        def send() -> None:
            try:
                producer.send("orders", b"x")
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=send)
        thread.start()
        assert resolver.asked.wait(60)
        assert producer.metrics()["connection-count"] == 1
        producer.flush(60)
        producer.close()
        assert thread.is_alive()
        resolver.may_answer.set()
        thread.join(60)
        assert not thread.is_alive()
    (error,) = failed
    assert str(error) == "the producer is closed"


def test_a_slow_resolver_is_waited_for(resolver: Resolver) -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        port = fakes.bootstrap.rpartition(":")[2]
        with Producer(f"slow.invalid:{port}") as producer:
            threading.Timer(0.05, resolver.may_answer.set).start()
            assert producer.send("orders", b"x").result(60).offset == 0
