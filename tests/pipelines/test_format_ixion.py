"""`format("ixion")` beside Spark's Kafka connector: the same options, the same schema, the same rows."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from ixion.pipelines.errors import SpecError
from tests.clients.asking import add_partitions
from tests.pipelines.support import Lab

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NOW = 1_769_846_400_000


def fill(lab: Lab) -> None:
    """Partition 0: offsets 0 to 9, a second apart, with nulls and headers; partition 1: a single one."""
    producer = Producer({"bootstrap.servers": lab.bootstrap, "compression.type": "zstd"})
    for number in range(10):
        producer.produce(
            lab.topic,
            None if number == 3 else b"v%d" % number,
            None if number == 4 else b"k",
            0,
            timestamp=NOW + 1000 * number,
            headers=[("trace", b"%d" % number), ("empty", None)] if number % 2 else [],
        )
    producer.produce(lab.topic, b"other", None, 1, timestamp=NOW)
    assert producer.flush(60) == 0


def load(lab: Lab, kind: str, **options: Any) -> DataFrame:
    given = {"kafka.bootstrap.servers": lab.bootstrap, "subscribe": lab.topic, **options}
    if "assign" in options or "subscribePattern" in options:
        del given["subscribe"]
    return lab.spark.read.format(kind).options(**given).load()


def offsets(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in frame.select("partition", "offset").collect())


FIRST = [(0, number) for number in range(10)] + [(1, 0)]


def test_rows_and_schema_are_those_of_the_connector(lab: Lab) -> None:
    fill(lab)
    ours, theirs = load(lab, "ixion", includeHeaders="true"), load(lab, "kafka", includeHeaders="true")
    assert [(field.name, field.dataType.simpleString()) for field in ours.schema] == [
        (field.name, field.dataType.simpleString()) for field in theirs.schema
    ]
    assert ours.sort("partition", "offset").collect() == theirs.sort("partition", "offset").collect()
    assert load(lab, "ixion").columns == load(lab, "kafka").columns


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": "earliest", "endingOffsets": "latest"},
        {"startingOffsets": '{"TOPIC": {"0": 3, "1": -2}}', "endingOffsets": '{"TOPIC": {"0": 7, "1": -1}}'},
        {"startingTimestamp": str(NOW + 2500), "startingOffsetsByTimestampStrategy": "latest"},
        {"startingTimestamp": str(NOW), "endingTimestamp": str(NOW + 5000)},
        {"startingOffsetsByTimestamp": f'{{"TOPIC": {{"0": {NOW + 4000}, "1": {NOW}}}}}'},
        {"assign": '{"TOPIC": [0]}'},
        {"subscribePattern": "TOP.*"},
        {"minPartitions": "7"},
    ],
    ids=lambda options: " ".join(options),
)
def test_ranges_are_those_of_the_connector(lab: Lab, options: dict[str, str]) -> None:
    fill(lab)
    given = {
        name: value.replace("TOPIC", lab.topic).replace("TOP.", f"{lab.topic}.") for name, value in options.items()
    }
    found = offsets(load(lab, "ixion", **given))
    assert found == offsets(load(lab, "kafka", **given))
    assert found


def test_tasks_are_split_by_offsets(lab: Lab) -> None:
    fill(lab)
    frame = load(lab, "ixion", minPartitions="5")
    assert frame.rdd.getNumPartitions() >= 5
    assert offsets(frame) == FIRST


def test_aborted_records_are_left_out_on_request(lab: Lab) -> None:
    producer = Producer({"bootstrap.servers": lab.bootstrap, "transactional.id": lab.topic})
    producer.init_transactions(60)
    for value, commit in ((b"a", True), (b"b", False), (b"c", True)):
        producer.begin_transaction()
        producer.produce(lab.topic, value, partition=0)
        assert producer.flush(60) == 0
        if commit:
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)
    committed = load(lab, "ixion", **{"kafka.isolation.level": "read_committed"}).select("value").collect()
    assert sorted(bytes(row.value) for row in committed) == [b"a", b"c"]
    assert load(lab, "ixion").count() == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingOffset": "earliest"}, "has no option startingoffset; did you mean startingOffsets?"),
        ({"maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger is for streams"),
        ({"startingOffsets": "latest"}, "startingOffsets=latest leaves a batch query nothing to read"),
        ({"kafka.security.protocol": "TLS"}, "security_protocol is 'TLS'"),
        ({"startingOffsets": '{"TOPIC": {"0": 1}}'}, "startingOffsets leaves out"),
        ({"subscribe": "nothing-of-the-kind"}, "there is no topic 'nothing-of-the-kind'"),
    ],
)
def test_mistakes_are_named(lab: Lab, options: dict[str, str], said: str) -> None:
    fill(lab)
    given = {name: value.replace("TOPIC", lab.topic) for name, value in options.items()}
    with pytest.raises(Exception, match=r"(?s).") as caught:
        load(lab, "ixion", **given).collect()
    assert said in str(caught.value)


def test_a_stream_goes_on_where_its_checkpoint_says(lab: Lab) -> None:
    fill(lab)

    def drain() -> None:
        given = {"kafka.bootstrap.servers": lab.bootstrap, "subscribe": lab.topic, "startingOffsets": "earliest"}
        frame = lab.spark.readStream.format("ixion").options(**given).load()
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(lab.folder / "checkpoint"))
        query = writer.trigger(availableNow=True).start(str(lab.folder / "out"))
        assert query.awaitTermination(240)

    def found() -> list[tuple[int, int]]:
        return sorted((row["partition"], row["offset"]) for row in lab.rows())

    drain()
    assert found() == FIRST
    drain()
    assert found() == FIRST
    lab.send("more", "and more", partition=1)
    drain()
    assert found() == [*FIRST, (1, 1), (1, 2)]


def test_a_stream_finds_new_partitions(lab: Lab) -> None:
    fill(lab)
    seen: list[list[tuple[int, int]]] = []

    def keep(frame: DataFrame, _number: int) -> None:
        seen.append(offsets(frame))

    given = {"kafka.bootstrap.servers": lab.bootstrap, "subscribe": lab.topic, "startingOffsets": "earliest"}
    frame = lab.spark.readStream.format("ixion").options(**given).load()
    query = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(lab.folder / "c")).start()
    try:
        query.processAllAvailable()
        assert sorted(chain(*seen)) == FIRST
        add_partitions(lab.bootstrap, lab.topic, 3)
        lab.send("third", partition=2)
        query.processAllAvailable()
        assert (2, 0) in chain(*seen)
        progress = query.lastProgress
        assert progress is not None
        assert json.loads(progress["sources"][0]["endOffset"])[lab.topic] == {"0": 10, "1": 1, "2": 1}
    finally:
        query.stop()


def test_a_pipeline_reads_through_it_and_goes_on_through_the_connector(lab: Lab) -> None:
    text = '[format]\ntype = "bytes"\n[[sinks]]\ntype = "parquet"\npath = "out"\n'
    fill(lab)
    figures = lab.run(text, source='reader = "ixion"\ninclude = ["offset", "headers"]')
    assert (figures.rows_in, figures.rows_out, figures.lag) == (11, 11, 0)
    lab.send("last")
    figures = lab.run(text, source='include = ["offset", "headers"]')  # from the same checkpoint
    assert (figures.rows_in, figures.lag) == (1, 0)
    rows = lab.rows()
    assert sorted(row["kafka_offset"] for row in rows) == [0, *range(11)]
    assert [row["value"] for row in rows if row["kafka_offset"] == 3] == [None]  # a tombstone
    for source, said in (
        ("max_records_per_batch = 5", "has no max_records_per_batch"),
        ('[source.options]\n"kafka.security.protocol" = "SSL"', "has neither TLS nor SASL"),
    ):
        with pytest.raises(SpecError, match=said):
            lab.pipeline(text, source=f'reader = "ixion"\n{source}')
