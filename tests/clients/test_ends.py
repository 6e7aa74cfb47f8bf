"""However a producer ends, every record that it accepted has been told about, once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import pytest

from ixion.cli.main import build_kind
from ixion.clients.core.connection import ConnectionMachine, Outcome, Pending
from ixion.clients.core.producer.batch import Delivery
from ixion.clients.core.producer.sender import ProduceCall
from ixion.clients.metadata import TopicPartition
from ixion.clients.producer import Producer
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from tests.clients.fake import FakeCluster, Fault

ORDERS = TopicPartition("orders", 0)

cannot_be_patched = pytest.mark.skipif(
    build_kind() == "compiled", reason="compiled code calls its methods directly, and is not interrupted in between"
)


def send(producer: Producer, count: int, heard: list[Delivery]) -> None:
    for number in range(count):
        producer.send("orders", b"%d" % number, on_delivery=heard.append)


def send_and_fail(producer: Producer, heard: list[Delivery]) -> None:
    send(producer, 3, heard)
    raise ZeroDivisionError


def test_leaving_on_an_exception_fails_what_is_not_acknowledged() -> None:
    heard: list[Delivery] = []
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        producer = Producer(fakes.bootstrap, linger_ms=60_000)
        with pytest.raises(ZeroDivisionError), producer:
            send_and_fail(producer, heard)
        assert [delivery.offset for delivery in heard] == [-1] * 3
        error = heard[0].error
        assert error is not None
        assert error.message == "not acknowledged when the producer was left on ZeroDivisionError"
        with pytest.raises(ValueError, match="the producer is closed"):
            producer.send("orders", b"late")


def test_closing_with_too_little_time_fails_the_rest() -> None:
    heard: list[Delivery] = []
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fakes.at(1, ApiKey.PRODUCE, Fault.SILENCE)
        producer = Producer(fakes.bootstrap)
        send(producer, 3, heard)
        with pytest.raises(KafkaError, match="not settled within"):
            producer.close(timeout_s=0.05)
        assert [(delivery.offset, delivery.error is None) for delivery in heard] == [(-1, False)] * 3


@pytest.mark.parametrize("leaves", [False, True])
def test_a_callback_that_raises_takes_no_other_with_it(leaves: bool, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Delivery] = []

    def fail(delivery: Delivery) -> None:
        heard.append(delivery)
        raise LookupError(delivery.offset)

    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        producer = Producer(fakes.bootstrap, linger_ms=60_000)
        for number in range(3):
            producer.send("orders", b"%d" % number, on_delivery=fail)
        if leaves:
            with pytest.raises(ValueError, match="the caller's own"), producer:
                raise ValueError("the caller's own")
        else:
            producer.close()
    assert [delivery.offset for delivery in heard] == ([-1] * 3 if leaves else [0, 1, 2])
    assert caplog.messages == ["the callback of a record to orders-0 raised"] * 3


def test_a_callback_may_send_and_flush() -> None:
    heard: list[Delivery] = []
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Producer(fakes.bootstrap, batch_size=120) as producer:

            def again(delivery: Delivery) -> None:
                heard.append(delivery)
                if len(heard) < 20:
                    producer.send("orders", b"more", on_delivery=again)
                    producer.flush()

            producer.send("orders", b"first", on_delivery=again)
        assert [delivery.offset for delivery in heard] == list(range(20))


@pytest.mark.parametrize("waits", [False, True])
def test_a_callback_may_close_its_producer(waits: bool) -> None:
    """On the caller's thread, and on the producer's own, which cannot wait for itself to end."""
    heard: list[Delivery] = []
    closed = threading.Event()
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        producer = Producer(fakes.bootstrap, linger_ms=60_000 if waits else 1)

        def close(delivery: Delivery) -> None:
            heard.append(delivery)
            producer.close()
            closed.set()

        producer.send("orders", b"x", on_delivery=close)
        if waits:
            producer.flush()
        assert closed.wait(60)
        with pytest.raises(ValueError, match="the producer is closed"):
            producer.send("orders", b"y")
    assert [delivery.offset for delivery in heard] == [0]


def test_a_callback_that_ends_its_thread_does_not_end_the_producers() -> None:
    told = threading.Event()
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Producer(fakes.bootstrap, linger_ms=1) as producer:

            def leave(delivery: Delivery) -> None:
                told.set()
                sys.exit(1)

            producer.send("orders", b"x", on_delivery=leave)
            assert told.wait(60)
            again = threading.Event()
            producer.send("orders", b"y", on_delivery=lambda delivery: again.set())
            assert again.wait(60)  # nobody polls but the producer's own thread
            thread = producer._engine._stand_in
            assert thread is not None
            assert thread.is_alive()


def test_an_interrupt_in_a_callback_reaches_the_caller_and_the_other_callbacks_still_run() -> None:
    heard: list[Delivery] = []

    def interrupt(delivery: Delivery) -> None:
        heard.append(delivery)
        raise KeyboardInterrupt

    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        producer = Producer(fakes.bootstrap, linger_ms=60_000)
        producer.send("orders", b"0", on_delivery=interrupt)
        producer.send("orders", b"1", on_delivery=heard.append)
        interrupted = 0
        while len(heard) < 2:
            try:
                producer.flush()
            except KeyboardInterrupt:
                interrupted += 1
        producer.close()
    assert [delivery.offset for delivery in heard] == [0, 1]
    assert interrupted <= 1  # none if the producer's own thread ran it


@cannot_be_patched
@pytest.mark.parametrize("at", ["before", "after"])
def test_an_interrupt_while_sending_loses_nothing(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may come anywhere; `ixion produce` flushes then, and must not wait for an answer that nobody owes."""
    heard: list[Delivery] = []
    real = ConnectionMachine.send
    interrupts = [KeyboardInterrupt()]

    def send_interrupted(
        self: ConnectionMachine,
        api: ApiKey,
        version: int,
        request: Struct,
        pending: Pending,
        now_s: float,
        *,
        answered: bool = True,
    ) -> int:
        if api == ApiKey.PRODUCE and interrupts and threading.current_thread() is threading.main_thread():
            fault = interrupts.pop()
            if at == "after":
                real(self, api, version, request, pending, now_s, answered=answered)
            raise fault
        return real(self, api, version, request, pending, now_s, answered=answered)

    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        monkeypatch.setattr(ConnectionMachine, "send", send_interrupted)
        producer = Producer(fakes.bootstrap, linger_ms=60_000)
        send(producer, 3, heard)
        with pytest.raises(KeyboardInterrupt):
            producer.flush()
        producer.close()
        assert [delivery.offset for delivery in heard] == [0, 1, 2]
        assert fakes.logs[ORDERS].values() == [b"0", b"1", b"2"]


@cannot_be_patched
def test_an_interrupt_between_an_answer_and_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Delivery] = []
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        producer = Producer(fakes.bootstrap, linger_ms=60_000)
        real = ProduceCall.complete
        calls: list[object] = []

        def interrupted(self: ProduceCall, outcome: Outcome, now_s: float) -> None:
            calls.append(outcome)
            if len(calls) == 1:
                raise KeyboardInterrupt
            real(self, outcome, now_s)

        monkeypatch.setattr(ProduceCall, "complete", interrupted)
        send(producer, 3, heard)
        with pytest.raises(KeyboardInterrupt):
            producer.flush()
        producer.close()
        assert [delivery.offset for delivery in heard] == [0, 1, 2]
        assert fakes.logs[ORDERS].values() == [b"0", b"1", b"2"]


def test_a_fatal_error_reaches_every_caller() -> None:
    heard: list[Delivery] = []
    with FakeCluster(nodes=2) as fakes:
        fakes.add_topic("orders", leaders=[1, 2])
        fakes.at(1, ApiKey.PRODUCE, Fault.DROP)
        fakes.at(2, ApiKey.PRODUCE, fatal(fakes))
        producer = Producer(fakes.bootstrap, linger_ms=60_000)
        for number in range(6):
            producer.send("orders", b"%d" % number, partition=number % 2, on_delivery=heard.append)
        with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
            producer.close()
        assert len(heard) == 6


def fatal(fakes: FakeCluster) -> Callable[[Struct], Struct]:
    from tests.clients.test_producer import refuse

    return refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
