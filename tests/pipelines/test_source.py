"""Where reading begins, what holes and losses are, whose checkpoint it is, what is said when something is not there."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource

from ixion.pipelines.errors import PipelineError
from ixion.testing import Broker
from tests.pipelines.support import PATIENCE_S, Lab, column

TEXT = '[format]\ntype = "text"\n[[sinks]]\ntype = "parquet"\npath = "out"\n'


@pytest.mark.parametrize(
    ("start", "values"),
    [
        ('"earliest"', ["a", "b", "c", "d", "other"]),
        ('{ "TOPIC" = { 0 = 1 } }', ["b", "c", "d", "other"]),
        ("2026-01-31T08:00:00.002Z", ["c", "d"]),
    ],
    ids=["earliest", "offsets", "time"],
)
def test_a_first_run_begins_at_the_configured_offset(lab: Lab, start: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": lab.bootstrap})
    for number, value in enumerate("abcd"):
        producer.produce(lab.topic, value, partition=0, timestamp=1_769_846_400_000 + number)
    producer.produce(lab.topic, "other", partition=1, timestamp=1_769_846_400_000)
    producer.flush()
    lab.run(TEXT, source=f"start = {start.replace('TOPIC', lab.topic)}")
    assert column(lab.rows(), "value") == values


def test_latest_begins_with_what_comes_after_the_first_run(lab: Lab) -> None:
    lab.send("old")
    assert lab.run(TEXT, source='start = "latest"').rows_in == 0
    lab.send("new")
    lab.run(TEXT, source='start = "latest"')
    assert column(lab.rows(), "value") == ["new"]


def test_a_pattern_and_small_batches(lab: Lab, broker: Broker) -> None:
    for number in range(2):
        broker.create_topic(f"pat-{number}")
        lab.send(*(f"{number}-{row}" for row in range(6)), topic=f"pat-{number}")
    figures = lab.run(TEXT, source='pattern = "pat-.*"\nmax_records_per_batch = 4\nmin_partitions = 4')
    assert figures.batches == 3
    assert len(lab.rows()) == 12
    assert figures.lag == 0


def test_holes_are_no_loss(lab: Lab) -> None:
    """An aborted transaction, and the markers of both, leave offsets without records."""
    producer = Producer({"bootstrap.servers": lab.bootstrap, "transactional.id": lab.topic})
    producer.init_transactions(30)
    for value, commit in (("kept", True), ("aborted", False), ("kept too", True)):
        producer.begin_transaction()
        producer.produce(lab.topic, value, partition=0)
        producer.flush()
        (producer.commit_transaction if commit else producer.abort_transaction)()
    lab.run(TEXT, source='include = ["offset"]')
    assert [(row["kafka_offset"], row["value"]) for row in sorted(lab.rows(), key=lambda row: row["kafka_offset"])] == [
        (0, "kept"),
        (4, "kept too"),
    ]


def test_another_pipelines_checkpoint_is_refused(lab: Lab) -> None:
    lab.send("a")
    lab.run(TEXT, name="one")
    (lab.folder / ".ixion" / "one").rename(lab.folder / ".ixion" / "two")
    with pytest.raises(PipelineError, match=f"belongs to pipeline one, which reads {lab.topic}"):
        lab.run(TEXT, name="two")


def test_a_pipeline_runs_once_at_a_time(lab: Lab) -> None:
    lab.send("a")
    pipeline = lab.pipeline(TEXT)
    with pipeline.checkpoint().locked(), pytest.raises(PipelineError, match="running already") as caught:
        lab.run(TEXT)
    assert caught.value.retry


def test_unknown_topics_name_the_nearest(lab: Lab) -> None:
    wrong = lab.topic[:-1]
    with pytest.raises(PipelineError) as caught:
        lab.pipeline(TEXT, source=f'topics = ["{wrong}"]').check(lab.spark)
    assert f"there is no topic {wrong}; did you mean '{lab.topic}'?" in str(caught.value)


def test_following_goes_on_until_it_is_stopped(lab: Lab) -> None:
    from ixion.pipelines.batch.metrics import BatchFigures
    from ixion.pipelines.run.progress import Progress

    held: list[Progress] = []
    batches: list[BatchFigures] = []
    arrived = threading.Event()

    def report(batch: BatchFigures) -> None:
        batches.append(batch)
        if sum(one.rows_in for one in batches) == 2:
            arrived.set()

    def follow() -> None:
        lab.pipeline(TEXT).run(lab.spark, follow=True, every_ms=100, report=report, started=held.append)

    lab.send("a")
    thread = threading.Thread(target=follow)
    thread.start()
    end = time.monotonic() + PATIENCE_S
    while not batches and time.monotonic() < end:
        thread.join(0.1)
    lab.send("b")
    assert arrived.wait(PATIENCE_S)
    held[0].stop()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert column(lab.rows(), "value") == ["a", "b"]
    assert [one.rows_in for one in lab.pipeline(TEXT).checkpoint().history() if one.rows_in] == [1, 1]


def test_a14_delayed_records_leave_holes_that_are_no_data_loss(lab: Lab, broker: Broker) -> None:
    """Before, between and after the others; failOnDataLoss is true."""
    settings: dict[str, Any] = {"delivery.delay.mode": "record"}
    broker.create_topic("with-holes", 1, **settings)
    producer = Producer({"bootstrap.servers": broker.bootstrap})

    def send(*values: str) -> None:
        for value in values:
            headers: dict[str, Any] = {} if value else {"x-deliver-after-ms": "3600000"}
            producer.produce("with-holes", value, headers=headers)
            assert producer.flush(PATIENCE_S) == 0

    source = 'topics = ["with-holes"]\nstart = "earliest"'
    send("", "", "first", "", "second", "", "")
    lab.run(TEXT, source=source)
    assert column(lab.rows(), "value") == ["first", "second"]
    send("", "")
    assert lab.run(TEXT, source=source).rows_in == 0, "only holes"
    send("third", "")
    lab.run(TEXT, source=source)
    assert sorted(column(lab.rows(), "value")) == ["first", "second", "third"]


def test_records_of_a_topic_with_a_fixed_delay_are_read_when_they_are_due(lab: Lab, broker: Broker) -> None:
    """For Spark, the first record that is not due is the end."""
    settings: dict[str, Any] = {"delivery.delay.mode": "fixed", "delivery.delay.ms": "3600000"}
    broker.create_topic("fixed", 1, **settings)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("fixed", "later")
    assert producer.flush(PATIENCE_S) == 0
    source = 'topics = ["fixed"]\nstart = "earliest"'
    assert lab.run(TEXT, source=source).rows_in == 0
    change = ConfigResource(ConfigResource.Type.TOPIC, "fixed")
    change.add_incremental_config(ConfigEntry("delivery.delay.ms", "1", incremental_operation=AlterConfigOpType.SET))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for done in admin.incremental_alter_configs([change]).values():
        done.result(PATIENCE_S)
    lab.run(TEXT, source=source)
    assert column(lab.rows(), "value") == ["later"]
