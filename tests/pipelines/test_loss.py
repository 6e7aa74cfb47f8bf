"""Records that are gone before they were read stop a pipeline; all else that is missing in a topic does not."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.source.lost_records import EMPTY_ID, Topic, refuse_losses, refuse_start
from ixion.testing import Broker
from tests.pipelines.support import PATIENCE_S, Lab, column, send

if TYPE_CHECKING:
    from ixion.broker.startup.broker import Broker as RealBroker
    from ixion.pipelines.batch.metrics import BatchFigures
    from ixion.pipelines.run.progress import Progress

TEXT = '[format]\ntype = "text"\n[[sinks]]\ntype = "parquet"\npath = "out"\n'
ANYWAY = '[source.options]\nfailOnDataLoss = "false"\n'
READ = {"orders": {"0": 6, "1": 1}}
IDS = {"orders": "one"}


def topic(name: str = "one", **partitions: tuple[int, int]) -> dict[str, Topic]:
    """`orders`, its partitions p0, p1 … from their first offset to their end."""
    first = {number[1:]: extent[0] for number, extent in partitions.items()}
    return {"orders": Topic(id=name, first=first, end={number[1:]: extent[1] for number, extent in partitions.items()})}


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(topic(p0=(0, 6), p1=(0, 1)), id="nothing-new"),
        pytest.param(topic(p0=(6, 9), p1=(1, 1)), id="what-was-read-is-deleted"),
        pytest.param(topic(p0=(0, 6), p1=(0, 1), p2=(3, 9)), id="a-new-partition"),
        pytest.param(topic(EMPTY_ID, p0=(0, 6), p1=(0, 1)), id="a-broker-without-ids"),
    ],
)
def test_no_loss(there: dict[str, Topic]) -> None:
    refuse_losses(READ, IDS, there)


@pytest.mark.parametrize(
    ("there", "said", "way_out"),
    [
        pytest.param(
            {},
            "topic orders is gone, of which partition 0 up to offset 6, partition 1 up to offset 1 had been read",
            "failOnDataLoss",
            id="gone",
        ),
        pytest.param(
            topic("two", p0=(0, 9), p1=(0, 9)),
            "topic orders was deleted and recreated, after partition 0 up to offset 6, partition 1 up to offset 1 had",
            "--again",
            id="made-anew",
        ),
        pytest.param(
            topic(p0=(0, 6)),
            "topic orders has no partition 1 any more, which had been read up to offset 1",
            "--again",
            id="fewer-partitions",
        ),
        pytest.param(
            topic(p0=(0, 3), p1=(0, 1)),
            "orders-0 ends at offset 3 and had been read up to offset 6",
            "--again",
            id="shrunk",
        ),
        pytest.param(
            topic(p0=(7, 9), p1=(4, 5)),
            "deleted before they were read: offset 6 of orders-0; offsets 1 to 3 of orders-1",
            "failOnDataLoss",
            id="deleted",
        ),
    ],
)
def test_loss(there: dict[str, Topic], said: str, way_out: str) -> None:
    with pytest.raises(PipelineError) as caught:
        refuse_losses(READ, IDS, there)
    assert said in str(caught.value)
    assert way_out in caught.value.hint
    assert not caught.value.retry


def test_many_losses_are_not_all_listed() -> None:
    there = Topic(id="one", first={}, end={})
    with pytest.raises(PipelineError, match=r"has no partition 3 any more.*; and 6 more$"):
        refuse_losses({"orders": {str(number): 1 for number in range(10)}}, IDS, {"orders": there})


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ({0: 2}, "offset 2 of orders-0, which has offsets 3 to 9"),
        ({0: 10}, "offset 10 of orders-0, which has offsets 3 to 9"),
        ({4: 0}, "partition 4 of orders, which has 1"),
    ],
)
def test_a_start_that_is_not_there(start: dict[int, int], said: str) -> None:
    refuse_start({"orders": {0: 3}, "not yet there": {0: 3}}, topic(p0=(3, 9)))
    with pytest.raises(PipelineError, match=said):
        refuse_start({"orders": start}, topic(p0=(3, 9)))


def delete_records(lab: Lab, before: int) -> None:
    """Of partition 0."""
    admin = AdminClient({"bootstrap.servers": lab.bootstrap})
    (done,) = admin.delete_records([TopicPartition(lab.topic, 0, before)]).values()
    done.result(30)


def delete_topic(lab: Lab, name: str = "") -> None:
    admin = AdminClient({"bootstrap.servers": lab.bootstrap})
    topic = name or lab.topic
    admin.delete_topics([topic])[topic].result(30)


def test_deleted_records_are_a_loss_only_if_they_were_not_read(lab: Lab) -> None:
    lab.send(*"abcdef")
    lab.run(TEXT)
    delete_records(lab, 4)
    lab.send(*"ghijk")
    lab.run(TEXT)
    lab.send(*"lmno")
    delete_records(lab, 13)
    for attempt in (lab.run, lambda text: lab.pipeline(text).check(lab.spark)):
        with pytest.raises(PipelineError, match=f"deleted before they were read: offsets 11 to 12 of {lab.topic}-0"):
            attempt(TEXT)
    lab.run(TEXT, source=ANYWAY)
    assert column(lab.rows(), "value") == list("abcdefghijkno")


def test_a_topic_created_again_is_a_loss_even_if_it_is_longer(lab: Lab, broker: Broker) -> None:
    lab.send(*"abc")
    lab.run(TEXT)
    delete_topic(lab)
    with pytest.raises(PipelineError, match=f"topic {lab.topic} is gone") as caught:
        lab.run(TEXT, source="create_missing = true")
    assert "Exception" not in str(caught.value) + caught.value.hint
    broker.create_topic(lab.topic, partitions=2)
    lab.send(*"vwxyz")
    with pytest.raises(
        PipelineError, match=f"topic {lab.topic} was deleted and recreated, after partition 0 up to off"
    ):
        lab.run(TEXT)
    # The way out that is named: all that is in the topic now is added.
    (lab.folder / ".ixion").rename(lab.folder / "old")
    lab.pipeline(TEXT).run(lab.spark, again=True)
    assert column(lab.rows(), "value") == list("abcvwxyz")


def test_compacted_records_are_no_loss_and_old_ones_that_retention_took_are(lab: Lab, broker: Broker) -> None:
    from ixion.broker.log.cleaner import Cleaner

    async def compact(running: RealBroker) -> None:
        cleaner = Cleaner(running.parts.logs, 1 << 20)
        while cleaner.clean_dirtiest(running.parts.clock_ms()) is not None:
            pass

    async def retain(running: RealBroker) -> None:
        running.parts.logs.look_after()

    def fill(name: str) -> None:
        for number in range(20):  # batches of one, so that segments roll between them
            send(lab.bootstrap, name, [f"{number}"], key=f"{number % 3}")

    compacted, short = f"{lab.topic}-compacted", f"{lab.topic}-short"
    broker.create_topic(compacted, cleanup_policy="compact", segment_bytes=200, min_cleanable_dirty_ratio=0.0)
    broker.create_topic(short, segment_bytes=200, retention_bytes=300)
    both = f'pattern = "{lab.topic}-(compacted|short)"\ninclude = ["topic", "offset"]'
    fill(compacted)
    fill(short)
    broker.call(compact)
    lab.run(TEXT, source=both)
    newest = [int(row["value"]) for row in lab.rows() if row["kafka_topic"] == compacted]
    assert newest[-3:] == [17, 18, 19]
    assert len(newest) < 10
    fill(compacted)
    broker.call(compact)
    lab.run(TEXT, source=both)
    offsets = {row["kafka_offset"] for row in lab.rows() if row["kafka_topic"] == compacted}
    assert {37, 38, 39} < offsets
    fill(short)
    broker.call(retain)
    with pytest.raises(PipelineError, match=f"deleted before they were read: offsets 20 to 3. of {short}-0"):
        lab.run(TEXT, source=both)


def test_a_topic_that_is_deleted_while_it_is_followed(lab: Lab) -> None:
    arrived = threading.Event()
    held: list[Progress] = []
    caught: list[PipelineError] = []

    def follow() -> None:
        quick = '[source.options]\n"fetchOffset.retryIntervalMs" = 10\n'
        try:
            lab.pipeline(TEXT, source=quick).run(
                lab.spark, follow=True, every_ms=100, report=lambda _: arrived.set(), started=held.append
            )
        except PipelineError as error:
            caught.append(error)

    lab.send("a")
    thread = threading.Thread(target=follow)
    thread.start()
    assert arrived.wait(PATIENCE_S)
    delete_topic(lab)
    thread.join(PATIENCE_S)
    assert [str(error) for error in caught] == [
        f"what was read before is not there any more: topic {lab.topic} is gone, of which partition 0 up to offset 1, "
        "partition 1 up to offset 0 had been read"
    ]


def test_a_topic_that_is_created_again_while_it_is_followed(lab: Lab, broker: Broker) -> None:
    """The new one is longer: going on where the old one ended would leave its first records out."""
    held: list[Progress] = []

    def report(batch: BatchFigures) -> None:
        if batch.batch == 0:
            delete_topic(lab)
            broker.create_topic(lab.topic, partitions=2)
            lab.send(*"vwxyz")
        else:
            held[0].stop()

    lab.send(*"abc")
    with pytest.raises(
        PipelineError, match=f"topic {lab.topic} was deleted and recreated, after partition 0 up to off"
    ):
        lab.pipeline(TEXT).run(lab.spark, follow=True, every_ms=4000, report=report, started=held.append)
    assert column(lab.rows(), "value") == list("abc")


def test_a_topic_that_a_pattern_finds_later_is_remembered(lab: Lab, broker: Broker) -> None:
    from ixion.pipelines.source.topic_ids import TopicWatch

    pattern = f'pattern = "{lab.topic}.*"'
    pipeline = lab.pipeline(TEXT, source=pattern)
    lab.send("a")
    pipeline.run(lab.spark)
    broker.create_topic(f"{lab.topic}-2")
    checkpoint = pipeline.checkpoint(lab.spark)
    (offsets,) = [path for path in (lab.folder / ".ixion/p/offsets").iterdir() if path.name == "0"]
    reached = {lab.topic: {"0": 1, "1": 0}, f"{lab.topic}-2": {"0": 1}}
    (offsets.parent / "1").write_text("\n".join([*offsets.read_text().splitlines()[:2], json.dumps(reached)]))
    with TopicWatch(lab.spark, pipeline.spec.source, checkpoint) as watch:
        watch.look(1)
        assert set(checkpoint.topic_ids()) == {lab.topic, f"{lab.topic}-2"}
        delete_topic(lab, f"{lab.topic}-2")
        broker.create_topic(f"{lab.topic}-2")
        with pytest.raises(PipelineError, match=f"topic {lab.topic}-2 was deleted and recreated"):
            watch.look(1)
