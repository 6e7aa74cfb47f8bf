"""However a producer ends, every record that it accepted has been told about, once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ixion.clients.cluster import Cluster
from ixion.clients.connection import Connection
from ixion.clients.metadata import TopicPartition
from ixion.clients.outbox import Delivery
from ixion.clients.producer import Producer
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.notation import Struct
from ixion.protocol.registry import ApiKey
from tests.clients.fake import FakeCluster, Fault

ORDERS = TopicPartition("orders", 0)


def send(producer: Producer, count: int, heard: list[Delivery]) -> None:
    for number in range(count):
        producer.send("orders", b"%d" % number, on_delivery=heard.append)


def send_and_fail(producer: Producer, heard: list[Delivery]) -> None:
    send(producer, 3, heard)
    raise ZeroDivisionError


def test_leaving_on_an_exception_fails_what_is_not_acknowledged() -> None:
    heard: list[Delivery] = []
    with FakeCluster() as fakes, Cluster(fakes.bootstrap) as cluster:
        fakes.add_topic("orders", leaders=[1])
        producer = Producer(cluster, linger_ms=60_000)
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
    with FakeCluster() as fakes, Cluster(fakes.bootstrap) as cluster:
        fakes.add_topic("orders", leaders=[1])
        fakes.at(1, ApiKey.PRODUCE, Fault.SILENCE)
        producer = Producer(cluster)
        send(producer, 3, heard)
        with pytest.raises(KafkaError, match="not settled within"):
            producer.close(timeout_s=0.05)
        assert [(delivery.offset, delivery.error is None) for delivery in heard] == [(-1, False)] * 3


@pytest.mark.parametrize("leaves", [False, True])
def test_a_callback_that_raises_takes_no_other_with_it(leaves: bool) -> None:
    heard: list[Delivery] = []

    def fail(delivery: Delivery) -> None:
        heard.append(delivery)
        raise LookupError(delivery.offset)

    with FakeCluster() as fakes, Cluster(fakes.bootstrap) as cluster:
        fakes.add_topic("orders", leaders=[1])
        producer = Producer(cluster)
        for number in range(3):
            producer.send("orders", b"%d" % number, on_delivery=fail)
        if leaves:
            with pytest.raises(LookupError), producer:
                raise ValueError
            assert len(heard) == 3
        else:
            for number in range(3):
                with pytest.raises(LookupError, match=str(number)):
                    producer.flush()
            producer.close()
            assert [delivery.offset for delivery in heard] == [0, 1, 2]


def test_a_callback_may_send_and_flush() -> None:
    heard: list[Delivery] = []
    with FakeCluster() as fakes, Cluster(fakes.bootstrap) as cluster:
        fakes.add_topic("orders", leaders=[1])
        with Producer(cluster, batch_bytes=120) as producer:

            def again(delivery: Delivery) -> None:
                heard.append(delivery)
                if len(heard) < 20:
                    producer.send("orders", b"more", on_delivery=again)
                    producer.flush()

            producer.send("orders", b"first", on_delivery=again)
        assert [delivery.offset for delivery in heard] == list(range(20))


@pytest.mark.parametrize("at", ["before", "after"])
def test_an_interrupt_while_sending_loses_nothing(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may come anywhere; `ixion produce` flushes then, and must not wait for an answer that nobody owes."""
    heard: list[Delivery] = []
    real = Connection.send
    interrupts = [KeyboardInterrupt()]

    def send_interrupted(self: Connection, api: ApiKey, request: Struct, version: int, *, answered: bool = True) -> int:
        if api == ApiKey.PRODUCE and interrupts:
            fault = interrupts.pop()
            if at == "after":
                real(self, api, request, version, answered=answered)
            raise fault
        return real(self, api, request, version, answered=answered)

    with FakeCluster() as fakes, Cluster(fakes.bootstrap) as cluster:
        fakes.add_topic("orders", leaders=[1])
        monkeypatch.setattr(Connection, "send", send_interrupted)
        producer = Producer(cluster)
        send(producer, 3, heard)
        with pytest.raises(KeyboardInterrupt):
            producer.flush()
        producer.close()
        assert [delivery.offset for delivery in heard] == [0, 1, 2]
        assert fakes.logs[ORDERS].values() == [b"0", b"1", b"2"]


def test_an_interrupt_between_an_answer_and_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Delivery] = []
    with FakeCluster() as fakes, Cluster(fakes.bootstrap) as cluster:
        fakes.add_topic("orders", leaders=[1])
        producer = Producer(cluster)
        take_in = producer._sender._take_in
        calls: list[object] = []

        def interrupted(arrival: object) -> None:
            calls.append(arrival)
            if len(calls) == 1:
                raise KeyboardInterrupt
            take_in(arrival)  # type: ignore[arg-type]

        monkeypatch.setattr(producer._sender, "_take_in", interrupted)
        send(producer, 3, heard)
        with pytest.raises(KeyboardInterrupt):
            producer.flush()
        producer.close()
        assert [delivery.offset for delivery in heard] == [0, 1, 2]


def test_a_fatal_error_is_told_to_all() -> None:
    heard: list[Delivery] = []
    with FakeCluster(nodes=2) as fakes, Cluster(fakes.bootstrap) as cluster:
        fakes.add_topic("orders", leaders=[1, 2])
        fakes.at(1, ApiKey.PRODUCE, Fault.DROP)
        fakes.at(2, ApiKey.PRODUCE, fatal(fakes))
        producer = Producer(cluster, linger_ms=60_000)
        for number in range(6):
            producer.send("orders", b"%d" % number, partition=number % 2, on_delivery=heard.append)
        with pytest.raises(KafkaError, match="UNKNOWN_PRODUCER_ID"):
            producer.close()
        assert len(heard) == 6


def fatal(fakes: FakeCluster) -> Callable[[Struct], Struct]:
    from tests.clients.test_producer import refuse

    return refuse(ErrorCode.UNKNOWN_PRODUCER_ID)
