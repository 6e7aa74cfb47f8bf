"""A client that is dropped without close(): a ResourceWarning, no thread or file left, no record lost in silence."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from ixion.clients import Admin, Consumer, Producer, aio
from ixion.clients.core.producer.batch import Delivery
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.registry import ApiKey
from tests.clients.fake import FakeCluster, Fault
from tests.clients.test_producer import refuse, stored

pytestmark = pytest.mark.timeout(120)


def drop(holder: list[Any]) -> list[str]:
    """Drop the only reference; returns the warnings."""
    gc.collect()  # what other tests have dropped
    with pytest.warns(ResourceWarning, match="unclosed") as heard:
        let_go(holder)
    return [str(each.message) for each in heard]


def let_go(holder: list[Any]) -> None:
    holder.clear()
    gc.collect()


def thread_of(producer: Producer) -> threading.Thread:
    thread = producer._engine._stand_in
    assert thread is not None
    return thread


def test_what_a_dropped_producer_still_had_is_sent_and_its_thread_ends() -> None:
    told: list[Delivery] = []
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        kept = [Producer(fakes.bootstrap, linger_ms=3_600_000)]
        for number in range(3):
            kept[0].send("orders", b"%d" % number, on_delivery=told.append)
        thread = thread_of(kept[0])
        assert drop(kept) == ["unclosed producer: 3 records not acknowledged yet"]
        thread.join(60)
        assert not thread.is_alive()
        assert stored(fakes) == [b"0", b"1", b"2"]
        assert [delivery.offset for delivery in told] == [0, 1, 2]


def test_records_of_a_dropped_producer_that_fail_are_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fakes.at(1, ApiKey.PRODUCE, refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        kept = [Producer(fakes.bootstrap, linger_ms=3_600_000)]
        kept[0].send("orders", b"x")
        thread = thread_of(kept[0])
        assert drop(kept) == ["unclosed producer: 1 record not acknowledged yet"]
        thread.join(60)
        assert not thread.is_alive()
    assert "records of a producer that was dropped without close() were lost" in caplog.text
    assert "TOPIC_AUTHORIZATION_FAILED" in caplog.text


def test_a_dropped_producer_in_a_transaction_fails_its_records(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody can commit it any more, so nothing more is sent."""
    from ixion.testing import Broker

    told: list[Delivery] = []
    with Broker() as broker:
        broker.create_topic("orders")
        kept = [Producer(broker.bootstrap, linger_ms=3_600_000, transactional_id="dropped")]
        kept[0].init_transactions()
        kept[0].begin_transaction()
        kept[0].send("orders", b"x", on_delivery=told.append)
        thread = thread_of(kept[0])
        assert drop(kept) == ["unclosed producer: 1 record not acknowledged yet"]
        thread.join(60)
        assert not thread.is_alive()
    assert [str(delivery.error) for delivery in told] == [
        "OPERATION_NOT_ATTEMPTED: the producer was dropped in a transaction"
    ]
    assert "were lost" in caplog.text


class Application:
    """Holds a producer that holds methods of it."""

    def __init__(self, bootstrap: str) -> None:
        self.producer = Producer(bootstrap, value_serializer=self.serialize, interceptors=[self])

    def serialize(self, value: str) -> bytes:
        return value.encode()

    def on_send(self, record: Any) -> Any:
        return record

    def on_delivery(self, delivery: Delivery) -> None:
        pass


def test_a_producer_whose_owner_serializes_for_it_is_dropped_with_its_owner() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        kept = [Application(fakes.bootstrap)]
        kept[0].producer.send("orders", "x").result(60)
        thread = thread_of(kept[0].producer)
        assert drop(kept) == ["unclosed producer"]
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize("kind", [Producer, Consumer, Admin])
def test_an_unused_client_that_is_dropped_closes_its_files(kind: Callable[[str], Any]) -> None:
    kept = [kind("127.0.0.1:1")]
    inner = kept[0]._admin if kind is Admin else kept[0]
    file = inner._engine._bell_in
    assert os.fstat(file)
    del inner
    name = {Producer: "producer", Consumer: "consumer", Admin: "administrator"}[kind]  # type: ignore[index]
    before = os.fstat(file).st_ino
    assert drop(kept) == [f"unclosed {name}"]
    try:
        assert os.fstat(file).st_ino != before  # the number may have been given to another file
    except OSError:
        pass


@pytest.mark.parametrize("kind", [Producer, Consumer, Admin])
def test_a_client_that_was_refused_at_construction_warns_of_nothing(
    kind: Callable[..., Any], recwarn: pytest.WarningsRecorder
) -> None:
    with pytest.raises((TypeError, ValueError)):
        kind("127.0.0.1:1", no_such_setting=1)
    with pytest.raises(KafkaError):
        Consumer("127.0.0.1:1", group="g", topics=["no/topic"])
    gc.collect()
    assert not [each for each in recwarn if "unclosed" in str(each.message)]


SCRIPT = """
import logging
from ixion.clients import Producer
producer = Producer({bootstrap!r}, linger_ms=3_600_000)
producer.send("orders", b"x"); producer.send("orders", b"y")
"""


def test_a_program_that_ends_too_early_gets_a_warning_about_what_it_loses() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT.format(bootstrap=fakes.bootstrap)],
            check=True,
            stderr=subprocess.PIPE,
            text=True,
            timeout=100,
        )
    text = "the program ends before 2 records of a producer are acknowledged; call flush() or close() first"
    assert text in done.stderr


def test_on_a_loop_a_dropped_producer_sends_what_it_had_and_leaves() -> None:
    told: list[Delivery] = []

    async def work(fakes: FakeCluster) -> None:
        kept = [aio.Producer(fakes.bootstrap, linger_ms=3_600_000)]
        engine = kept[0]._engine
        for number in range(3):
            await kept[0].send("orders", b"%d" % number, on_delivery=told.append)
        assert drop(kept) == ["unclosed producer: 3 records not acknowledged yet"]
        while not engine.is_stopped:
            await asyncio.sleep(0.001)
        assert not engine._lines.lines
        assert not engine._watched

    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        asyncio.run(work(fakes))
        assert stored(fakes) == [b"0", b"1", b"2"]
    assert [delivery.offset for delivery in told] == [0, 1, 2]


def test_on_a_loop_dropped_readers_and_administrators_hang_up() -> None:
    async def work(fakes: FakeCluster) -> None:
        consumers = [aio.Consumer(fakes.bootstrap)]
        await consumers[0].assign([TopicPartition("orders", 0)])
        await consumers[0].poll(0.01)
        admins = [aio.Admin(fakes.bootstrap)]
        await admins[0].list_topics()
        engines = [consumers[0]._engine, admins[0]._admin._engine]
        assert all(engine._watched for engine in engines)
        assert drop(consumers) == ["unclosed consumer"]
        assert drop(admins) == ["unclosed administrator"]
        while not all(engine.is_stopped for engine in engines):
            await asyncio.sleep(0.001)
        assert not any(engine._watched for engine in engines)

    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        asyncio.run(work(fakes))


def test_a_task_without_references_is_not_taken_for_garbage_while_it_waits() -> None:
    """The loop itself has only weak references to tasks: the engine must know those that wait for it."""
    done: list[str] = []
    patient: dict[str, Any] = {"request_timeout_ms": 100_000}
    asked: list[object] = []

    async def work(bootstrap: str, release: threading.Event) -> None:
        async def produce() -> None:
            async with aio.Producer(bootstrap, max_block_ms=100_000, **patient) as producer:
                await producer.partitions_for("orders")
                done.append("producer")

        async def consume() -> None:
            async with aio.Consumer(bootstrap, default_api_timeout_ms=100_000, **patient) as consumer:
                await consumer.end_offsets([TopicPartition("orders", 0)])
                done.append("consumer")

        async def ask() -> None:
            async with aio.Admin(bootstrap, default_api_timeout_ms=100_000, **patient) as admin:
                await admin.list_topics()
                done.append("administrator")

        tasks = [weakref.ref(asyncio.create_task(each())) for each in (produce, consume, ask)]
        while len(asked) < 3:
            await asyncio.sleep(0.001)
        gc.collect()
        assert all(task() is not None for task in tasks)
        assert not done
        release.set()
        while len(done) < 3:
            await asyncio.sleep(0.001)
        while any((left := task()) is not None and not left.done() for task in tasks):
            await asyncio.sleep(0.001)

    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        release = threading.Event()
        answer = fakes.nodes[1]._answer

        def late(request: Any) -> Any:
            asked.append(request)
            release.wait(100)
            return answer(request)

        fakes.at(1, ApiKey.METADATA, *[late] * 3)
        asyncio.run(work(fakes.bootstrap, release))
    assert sorted(done) == ["administrator", "consumer", "producer"]


def test_records_that_a_closed_loop_can_no_longer_send_are_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    kept: list[aio.Producer] = []

    async def work(fakes: FakeCluster) -> None:
        kept.append(aio.Producer(fakes.bootstrap, linger_ms=3_600_000))
        await kept[0].send("orders", b"x")

    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fakes.at(1, ApiKey.PRODUCE, Fault.SILENCE)
        asyncio.run(work(fakes))
        assert drop(kept) == ["unclosed producer: 1 record not acknowledged yet"]
    assert "before 1 record of a producer is acknowledged" in caplog.text
