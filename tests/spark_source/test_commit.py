"""A batch is in its topic once, if its driver is killed at any moment; what cannot be decided is refused."""

from __future__ import annotations

from random import Random

import pytest

from ixion.clients import Admin, KafkaError, NewTopic
from ixion.spark import commit
from ixion.spark.sink_options import read_sink_options
from ixion.spark.staging import BatchId, Part, read_parts, staging_topic, write_part
from ixion.testing import Broker
from tests.spark_source.sinking import WRITER, batch_rows, committed, frame, write, write_and_die


@pytest.fixture
def topic(ixion_broker: Broker) -> str:
    ixion_broker.create_topic("out", partitions=3)
    return "out"


def values(*batches: int) -> list[str]:
    return sorted(value for number in batches for _, value in batch_rows(number))


def test_a_batch_that_is_repeated_is_written_once(ixion_broker: Broker, topic: str) -> None:
    for number in (0, 1, 1, 2, 2):
        write(ixion_broker.bootstrap, topic, number, batch_rows(number))
    assert committed(ixion_broker.bootstrap, topic) == values(0, 1, 2)


@pytest.mark.parametrize("moment", ["begin", "after 5", "after 10", "after 11", "commit", "committed"])
def test_a_driver_that_is_killed_leaves_all_or_nothing(ixion_broker: Broker, topic: str, moment: str) -> None:
    write(ixion_broker.bootstrap, topic, 0, batch_rows(0))
    write_and_die(ixion_broker.bootstrap, topic, 1, moment)
    found = committed(ixion_broker.bootstrap, topic)
    assert found == (values(0, 1) if moment == "committed" else values(0))
    write(ixion_broker.bootstrap, topic, 1, batch_rows(1))  # as Spark does, when the query is started again
    write(ixion_broker.bootstrap, topic, 2, batch_rows(2))
    assert committed(ixion_broker.bootstrap, topic) == values(0, 1, 2)


def test_an_earlier_driver_that_still_lives_is_refused(
    ixion_broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has sent its records; then a second driver writes the same batch."""
    real = commit.Mark.to_json

    def overtaken(mark: commit.Mark) -> bytes:
        monkeypatch.setattr(commit.Mark, "to_json", real)
        write(ixion_broker.bootstrap, topic, 0, batch_rows(0))
        return real(mark)

    monkeypatch.setattr(commit.Mark, "to_json", overtaken)
    with pytest.raises(KafkaError):
        write(ixion_broker.bootstrap, topic, 0, batch_rows(0))
    assert committed(ixion_broker.bootstrap, topic) == values(0)


def test_a_batch_that_fails_leaves_nothing(ixion_broker: Broker, topic: str) -> None:
    rows = [*batch_rows(0), ("k", "x" * 2_000_000)]
    with pytest.raises(KafkaError, match="1048576"):
        write(ixion_broker.bootstrap, topic, 0, rows)
    assert committed(ixion_broker.bootstrap, topic) == []


def test_a_checkpoint_that_was_set_back_is_refused(ixion_broker: Broker, topic: str) -> None:
    for number in range(3):
        write(ixion_broker.bootstrap, topic, number, batch_rows(number))
    with pytest.raises(KafkaError, match="batch 1 of a-query comes after batch 2, which is in the topic"):
        write(ixion_broker.bootstrap, topic, 1, batch_rows(1))
    more = [*batch_rows(2), ("k", "not in the topic")]
    with pytest.raises(KafkaError, match="is in the topic with 10 records, and has 11 others now"):
        write(ixion_broker.bootstrap, topic, 2, more)
    other = [(None, "of the same number"), *batch_rows(2)[1:]]
    with pytest.raises(KafkaError, match="has 10 others now"):
        write(ixion_broker.bootstrap, topic, 2, other)
    write(ixion_broker.bootstrap, topic, 2, batch_rows(2)[::-1])  # another order is the same batch
    write(ixion_broker.bootstrap, topic, 2, other, repeatedBatch="skip")
    assert committed(ixion_broker.bootstrap, topic) == values(0, 1, 2)


def test_a_writer_without_a_mark_begins_at_zero(ixion_broker: Broker, topic: str) -> None:
    with pytest.raises(KafkaError, match=r"it is unknown whether batch 5 is in the topic already.*firstBatch=5"):
        write(ixion_broker.bootstrap, topic, 5, batch_rows(5))
    write(ixion_broker.bootstrap, topic, 5, batch_rows(5), firstBatch="5")
    write(ixion_broker.bootstrap, topic, 6, batch_rows(6), firstBatch="5")
    assert committed(ixion_broker.bootstrap, topic) == values(5, 6)


def test_marks_that_would_expire_are_refused(ixion_broker: Broker, topic: str) -> None:
    ixion_broker.create_topic("short-lived")
    with pytest.raises(KafkaError, match=r"short-lived has cleanup.policy=delete"):
        write(ixion_broker.bootstrap, topic, 0, batch_rows(0), batchesTopic="short-lived")
    assert committed(ixion_broker.bootstrap, topic) == []


def test_marks_of_other_writers_are_not_ours(ixion_broker: Broker, topic: str) -> None:
    given = {"kafka.bootstrap.servers": ixion_broker.bootstrap, "topic": topic}
    for number, writer in ((4, "b"), (5, "b"), (0, "a"), (6, "b"), (1, "a")):
        options = read_sink_options({**given, "firstBatch": "4"})
        batch = BatchId(writer, number)
        commit.write_batch(options, batch, [write_part(options, batch, [frame([(None, f"{writer}{number}")])])])
    assert committed(ixion_broker.bootstrap, topic) == ["a0", "a1", "b4", "b5", "b6"]


def test_large_parts_go_through_a_topic_that_is_removed(ixion_broker: Broker, topic: str) -> None:
    random = Random(0)
    rows = [(None, random.randbytes(8000).hex()) for _ in range(120)]
    options = read_sink_options({"kafka.bootstrap.servers": ixion_broker.bootstrap, "topic": topic})
    batch = BatchId(WRITER, 0)
    part = write_part(options, batch, [frame(rows)])
    failed = write_part(options, batch, [frame(rows)])  # an attempt whose message never arrived
    assert part.pieces
    assert len(part.offsets) > 1
    assert set(part.offsets).isdisjoint(failed.offsets) or part.partition != failed.partition
    commit.write_batch(options, batch, [part])
    assert committed(ixion_broker.bootstrap, topic) == sorted(value for _, value in rows)
    with Admin(ixion_broker.bootstrap) as admin:
        assert staging_topic(options, batch) not in [each.name for each in admin.list_topics()]


def test_pieces_that_are_gone_fail_the_batch(ixion_broker: Broker, topic: str) -> None:
    options = read_sink_options(
        {"kafka.bootstrap.servers": ixion_broker.bootstrap, "topic": topic, "timeoutSeconds": "1"}
    )
    batch = BatchId(WRITER, 0)
    with Admin(ixion_broker.bootstrap) as admin:
        admin.create_topics([NewTopic(staging_topic(options, batch), 4)]).check()
    with pytest.raises(KafkaError):
        list(read_parts(options, [Part(batch, (), 0, (0, 1))]))
