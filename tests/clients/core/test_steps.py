"""The producer's steps, numbered as in the documents that this project began with: each is a place in our code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ixion.clients.core.client import ClientSettings
from ixion.clients.core.producer.batch import Delivery
from ixion.clients.core.producer.outbox import Outbox
from ixion.clients.core.producer.partitioner import keyed_partition
from ixion.clients.core.producer.preparing import Preparing
from ixion.clients.core.producer.settings import OutgoingRecord, ProducerSettings
from ixion.clients.faults import TimedOutError
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.registry import ApiKey
from tests.clients.core.sim import TOPIC, Simulation

SMALL = ProducerSettings(batch_size=150, linger_s=0.005)  # batches of about seven records


def started(settings: ProducerSettings = SMALL, **more: Any) -> Simulation:
    """A producer that knows its topic, in a calm cluster."""
    sim = Simulation(1, settings, trouble=0.0, **more)
    assert not sim.send(b"first", 0)
    sim.run(1.0)
    return sim


def box_of(sim: Simulation, partition: int = 0) -> Outbox:
    return next(box for box in sim.machine.active if box.place.partition == partition)


def fill(sim: Simulation, count: int, partition: int = 0) -> None:
    for number in range(count):
        assert sim.send(b"%d-%06d" % (partition, number), partition)


def carried(sim: Simulation) -> list[tuple[int, list[int]]]:
    """The partitions of each Produce, with the broker that got it."""
    return [
        (node, [part.index for topic in request.topic_data for part in topic.partition_data])
        for node, request in sim.produced
    ]


class Upper:
    """An interceptor."""

    def __init__(self) -> None:
        self.heard: list[Delivery] = []

    def on_send(self, record: OutgoingRecord) -> OutgoingRecord:
        return record._replace(value=record.value.upper())

    def on_delivery(self, delivery: Delivery) -> None:
        self.heard.append(delivery)


class Broken(Upper):
    def on_send(self, record: OutgoingRecord) -> OutgoingRecord:
        raise LookupError(record.topic)


def prepared(settings: ProducerSettings, value: object, headers: Sequence[tuple[str, bytes | None]] = ()) -> Any:
    return Preparing(settings).prepare(TOPIC, value, None, headers, None, None)


def test_step_2_interceptors_see_the_record_first(caplog: pytest.LogCaptureFixture) -> None:
    settings = ProducerSettings(interceptors=(Broken(), Upper()), value_serializer=str.encode)
    assert prepared(settings, "x").value == b"X"  # one that raises is passed over
    assert caplog.messages == ["on_send of an interceptor raised"]


def test_step_2_interceptors_hear_of_the_delivery_before_the_callback() -> None:
    upper = Upper()
    heard: list[Delivery] = []
    wish = Preparing(ProducerSettings(interceptors=(upper,))).wish(heard.append)
    assert wish is not None
    wish(Delivery(TopicPartition(TOPIC, 0), 5, None))
    assert [delivery.offset for delivery in upper.heard] == [delivery.offset for delivery in heard] == [5]


def test_step_3_a_record_waits_for_the_metadata_of_its_topic() -> None:
    sim = Simulation(1, SMALL, trouble=0.0)
    assert not sim.send(b"x", 0)
    sim.run(1.0)
    assert sim.machine.client.cluster.topics[TOPIC].partitions[0].leader == sim.leaders[0]
    assert sim.send(b"x", 0)


def test_step_4_serializers_make_bytes_of_key_and_value() -> None:
    settings = ProducerSettings(key_serializer=str.encode, value_serializer=str.encode)
    record = Preparing(settings).prepare(TOPIC, "value", "key", (), None, None)
    assert (record.key, record.value) == (b"key", b"value")
    assert prepared(settings, None).value is None


def test_step_5_a_key_decides_and_the_rest_sticks_until_a_batch_of_bytes() -> None:
    sim = started(partitions=4)
    batch = sim.machine.append(TOPIC, None, b"key", b"x", (), 1, None, sim.now_s)
    assert batch is not None
    assert batch.place.partition == keyed_partition(b"key", 4)
    places = []
    for number in range(60):
        batch = sim.machine.append(TOPIC, None, None, b"%010d" % number, (), 1, None, sim.now_s)
        assert batch is not None
        places.append(batch.place.partition)
    runs = [place for number, place in enumerate(places) if number == 0 or places[number - 1] != place]
    assert len(set(places)) > 1
    assert len(runs) <= 60 * 10 // 150 + 2  # it moves on after 150 bytes, not with every record


def test_step_5_a_partitioner_of_the_callers_own() -> None:
    sim = started(SMALL._replace(partitioner=lambda topic, key, value, count: count - 1))
    batch = sim.machine.append(TOPIC, None, b"key", b"x", (), 1, None, sim.now_s)
    assert batch is not None
    assert batch.place.partition == 1
    wrong = started(SMALL._replace(partitioner=lambda topic, key, value, count: count))
    with pytest.raises(KafkaError, match="the partitioner chose 2 for topic 'orders', which has 0 to 1"):
        wrong.machine.append(TOPIC, None, b"key", b"x", (), 1, None, sim.now_s)


def test_step_6_headers_cannot_change_any_more() -> None:
    headers: list[tuple[str, bytes | None]] = [("a", b"1")]
    record = prepared(ProducerSettings(value_serializer=str.encode), "x", headers)
    headers.append(("b", b"2"))
    assert record.headers == (("a", b"1"),)


def test_step_7_what_is_too_large_is_refused_at_once() -> None:
    sim = started(SMALL._replace(max_request_size=1000))
    with pytest.raises(KafkaError, match=r"a record of 1092 bytes is too large: max\.request\.size is 1000"):
        sim.send(bytes(1000), 0)
    sim = started(SMALL._replace(buffer_memory=500))
    with pytest.raises(KafkaError, match=r"a record of 592 bytes is too large: buffer\.memory is 500"):
        sim.send(bytes(500), 0)


def test_step_8_1_each_partition_has_its_own_batches() -> None:
    sim = started()
    fill(sim, 2, 0)
    fill(sim, 1, 1)
    assert [box.open.count for box in sim.machine.active if box.open is not None] == [2, 1]


def test_step_8_2_a_record_goes_into_the_last_batch_while_it_fits_and_the_first_always_does() -> None:
    sim = started()
    assert sim.send(bytes(400), 0)
    assert sim.send(b"x", 0)
    box = box_of(sim)
    assert [batch.count for batch in box.waiting] == [1]
    assert box.open is not None
    assert box.open.count == 1


def test_step_8_3_memory_is_taken_from_the_buffer_and_given_back() -> None:
    sim = started(SMALL._replace(buffer_memory=400))
    fill(sim, 1, 0)
    assert sim.machine.used_bytes == 150
    fill(sim, 1, 1)
    assert sim.machine.used_bytes == 300
    sim.run(1.0)
    assert sim.machine.used_bytes == 0


def test_step_8_3_a_record_without_room_waits() -> None:
    sim = started(SMALL._replace(buffer_memory=200))
    fill(sim, 1, 0)
    assert not sim.send(b"x", 1)
    assert "no room in the buffer of 200 bytes" in sim.machine.why_it_waits(TOPIC, 1.0).message
    sim.run(1.0)
    assert sim.send(b"x", 1)


def test_step_8_5_callbacks_come_in_the_order_of_the_records() -> None:
    sim = started()
    order: list[Delivery] = []
    for number in range(40):
        sim.machine.append(TOPIC, 0, None, b"%06d" % number, (), 1, order.append, sim.now_s)
    sim.finish()
    assert [delivery.offset for delivery in order] == list(range(40))


def test_step_10_2_a_closing_producer_sends_what_is_left() -> None:
    sim = started(SMALL._replace(linger_s=3600.0))
    fill(sim, 3)
    sim.machine.is_closing = True
    sim.run(1.0)
    assert len(sim.logs[0].values) == 3


def test_step_10_3_a_forced_close_fails_what_is_left() -> None:
    sim = started(SMALL._replace(linger_s=3600.0))
    fill(sim, 3)
    sim.machine.close(TimedOutError("closed"), sim.now_s)
    sim.run(0.0)
    errors = [heard[0].error for heard in sim.heard.values()]
    assert [error is not None and error.message == "closed" for error in errors] == [True] * 3
    assert sim.machine.used_bytes == 0


def test_step_11_1_a_partition_without_a_leader_asks_for_metadata() -> None:
    sim = started()
    fill(sim, 1)
    sim.machine.client.cluster.topics.clear()
    learnt = sim.machine.client.cluster.changes
    sim.run(1.0)
    assert sim.machine.client.cluster.changes > learnt
    assert len(sim.logs[0].values) == 1


@pytest.mark.parametrize("reason", ["lingered", "full", "waiters", "closing"])
def test_step_11_2_the_first_batch_is_ready(reason: str) -> None:
    sim = started(SMALL._replace(linger_s=60.0))
    fill(sim, 1)
    sim.run(59.0)
    assert sim.produced == []
    if reason == "lingered":
        sim.run(1.01)
    elif reason == "full":
        fill(sim, 10)
    elif reason == "waiters":
        sim.machine.turns.take(TOPIC)
    else:
        sim.machine.is_closing = True
    sim.run(0.5)
    assert len(sim.produced) >= 1


def test_step_11_2_a_retry_waits_for_its_pause() -> None:
    sim = started()
    fill(sim, 1)
    box = box_of(sim)
    box.not_before_s = sim.now_s + 5.0
    sim.run(4.9)
    assert sim.produced == []
    sim.run(0.2)
    assert len(sim.produced) == 1


def test_step_11_3_the_machine_says_when_it_wants_to_be_called_again() -> None:
    sim = started()
    fill(sim, 1)
    sim.run(1.0)  # it has its producer id now
    assert sim.machine.wake_s > sim.now_s + 100
    assert sim.send(b"x", 0)
    sim.machine.tick(sim.now_s)
    assert sim.machine.wake_s == pytest.approx(sim.now_s + SMALL.linger_s)


def test_step_11_5_a_broker_with_too_many_requests_under_way_gets_no_more() -> None:
    sim = started(SMALL._replace(max_in_flight=2))
    fill(sim, 7)
    sim.run(1.0)  # the broker knows the producer now
    fill(sim, 70)
    sim.machine.tick(sim.now_s)
    assert max(machine.in_flight for machine in sim.machine.client.machines) == 2


@pytest.mark.parametrize("step", ["11.6", "11.8", "11.14"])
def test_step_11_8_a_request_carries_one_batch_of_each_partition(step: str) -> None:
    sim = started(nodes=1)
    fill(sim, 30, 0)
    fill(sim, 30, 1)
    sim.run(1.0)
    assert all(sorted(set(parts)) == sorted(parts) for _, parts in carried(sim))
    assert any(len(parts) == 2 for _, parts in carried(sim))
    assert [len(log.values) for log in sim.logs] == [30, 30], step


def test_step_11_8_a_request_is_no_larger_than_allowed() -> None:
    sim = started(SMALL._replace(max_request_size=160), nodes=1)
    fill(sim, 7, 0)
    fill(sim, 7, 1)
    sim.run(1.0)
    assert all(len(parts) == 1 for _, parts in carried(sim))


@pytest.mark.parametrize("step", ["11.7", "11.9"])
def test_step_11_9_without_numbers_nothing_flies_beside_a_batch_of_its_partition(step: str) -> None:
    sim = started(SMALL._replace(enable_idempotence=False, acks=1))
    fill(sim, 30)
    sim.machine.tick(sim.now_s)
    assert len(box_of(sim).flying) <= 1, step
    sim.finish()
    assert sim.logs[0].values == sorted(sim.logs[0].values)


def test_step_11_10_a_batch_whose_time_is_up_fails_without_a_retry() -> None:
    sim = started(SMALL._replace(delivery_timeout_s=2.0, linger_s=60.0))
    fill(sim, 2)
    sim.run(1.9)
    assert not sim.heard[b"0-000000"]
    sim.run(0.2)
    (delivery,) = sim.heard[b"0-000000"]
    assert delivery.error is not None
    assert delivery.error.message == "orders-0: not delivered within 2 s"
    assert sim.produced == []
    assert sim.machine.used_bytes == 0


def test_step_11_11_counters_move() -> None:
    sim = started()
    fill(sim, 20)
    sim.finish()
    metrics = sim.machine.metrics()
    assert metrics["record-send-total"] == 20
    assert metrics["request-total"] == len(sim.produced)
    assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]


@pytest.mark.parametrize("step", ["11.15", "11.17", "11.23", "11.24"])
def test_step_11_24_an_answer_settles_the_batches_of_its_own_request(step: str) -> None:
    sim = started(nodes=1)
    fill(sim, 30, 0)
    fill(sim, 30, 1)
    sim.finish()
    for value, heard in sim.heard.items():
        log = sim.logs[int(value.split(b"-")[0])]
        assert log.values[heard[0].offset] == value, step


def test_step_11_20_metadata_is_asked_for_again_with_age() -> None:
    sim = started(SMALL._replace(client=ClientSettings(metadata_max_age_s=10.0)))
    learnt = sim.machine.client.cluster.changes
    sim.run(35.0)
    assert sim.machine.client.cluster.changes - learnt == 3


def test_step_11_22_what_the_broker_speaks_is_learnt_first() -> None:
    sim = started()
    (machine,) = sim.machine.client.machines
    assert machine.version(ApiKey.PRODUCE) == ApiKey.PRODUCE.newest


def test_retries_go_back_to_the_head() -> None:
    """The documents' chapter on retries."""
    sim = started()
    fill(sim, 7)
    sim.run(1.0)
    sim.leaders[0] = (sim.leaders[0] + 1) % sim.nodes
    sim.epochs[0] += 1
    for number in range(7, 40):
        assert sim.send(b"0-%06d" % number, 0)
    sim.finish()
    assert sim.logs[0].values == [b"0-%06d" % number for number in range(40)]


def test_a_refusal_that_names_the_new_leader_spares_the_refresh() -> None:
    sim = started()
    cluster = sim.machine.client.cluster
    where = TopicPartition(TOPIC, 0)
    new = (sim.leaders[0] + 1) % sim.nodes
    assert cluster.hint(where, new, 7, {})
    found = cluster.leader(where)
    assert found is not None
    assert (found.leader, found.leader_epoch) == (new, 7)
    assert not cluster.hint(where, sim.leaders[0], 6, {})  # older
    assert not cluster.hint(where, 99, 8, {})  # no known broker has that id


def test_an_unauthorized_cluster_ends_the_producer() -> None:
    sim = started()
    fill(sim, 3)
    sim.machine.sender.fatal = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    sim.run(1.0)
    assert all(len(heard) == 1 for heard in sim.heard.values())
    assert sim.machine.fatal is not None
