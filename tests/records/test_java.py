"""Kafka's own Java classes read what we build, and we read what they build: all codecs, all kinds of batches."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from devtools.jvm import compile_java, run_java
from devtools.parts import need
from ixion.language.records.batch import BatchView, TimestampType
from ixion.language.records.batches import iter_batches
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.compression import Codec
from ixion.language.records.control import transaction_marker
from ixion.language.records.record import Record
from ixion.language.records.validate import TopicRules, validate_produce

SOURCE = Path(__file__).with_name("RecordsPeer.java")


def some_bytes(dice: random.Random) -> bytes | None:
    kind = dice.random()
    if kind < 0.15:
        return None
    size = dice.choice([0, 1, 63, 64, 300, 9_000]) if kind < 0.9 else dice.randrange(100_000)
    return dice.randbytes(size) if dice.random() < 0.5 else bytes(dice.choices(b"abc", k=size))


def some_batch(dice: random.Random, codec: Codec) -> bytes:
    base_offset = dice.choice([0, 5, 2**31, 2**62])
    with_producer = dice.random() < 0.5
    time = dice.choice([0, 1_700_000_000_000])
    builder = BatchBuilder(
        codec=codec,
        base_offset=base_offset,
        leader_epoch=dice.choice([-1, 0, 7]),
        timestamp_type=dice.choice(list(TimestampType)),
        producer_id=dice.randrange(2**40) if with_producer else -1,
        producer_epoch=dice.randrange(2**15) if with_producer else -1,
        base_sequence=dice.choice([0, 99, 2**31 - 2]) if with_producer else -1,
        is_transactional=with_producer and dice.random() < 0.5,
        delete_horizon=dice.choice([None, None, 1_600_000_000_000]),
    )
    offset = base_offset
    for _ in range(dice.choice([1, 2, 10, 100])):
        headers = [(dice.choice(["", "h", "naïve"]), some_bytes(dice)) for _ in range(dice.choice([0, 0, 1, 3]))]
        builder.append_at(offset, some_bytes(dice), some_bytes(dice), headers, time + dice.randrange(-10, 10**6))
        offset += dice.choice([1, 1, 1, 200])
    return builder.build()


@pytest.fixture(scope="module")
def ours() -> bytes:
    dice = random.Random(11)
    batches = [some_batch(dice, codec) for _ in range(12) for codec in Codec]
    markers = [
        transaction_marker(
            commit=commit,
            producer_id=5,
            producer_epoch=1,
            coordinator_epoch=3,
            timestamp=8,
            base_offset=77,
            leader_epoch=4,
        )
        for commit in (True, False)
    ]
    return b"".join(batches + markers)


@pytest.fixture(scope="module")
def answer(ours: bytes, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], bytes]:
    """What Java printed of our batches, and the batches it wrote."""
    jars = need("clients-4.3.0")
    directory = tmp_path_factory.mktemp("java")
    (directory / "in").write_bytes(ours)
    printed = run_java(
        "RecordsPeer", str(directory / "in"), str(directory / "out"), classpath=f"{compile_java(SOURCE, jars)}:{jars}"
    )
    return printed.splitlines(), (directory / "out").read_bytes()


def hex_of(data: bytes | None) -> str:
    return "null" if data is None else f"'{data.hex()}'"


def line_of(record: Record) -> str:
    headers = "".join(f" {hex_of(name.encode())}={hex_of(value)}" for name, value in record.headers)
    return f"  {record.offset} {record.timestamp} {hex_of(record.key)} {hex_of(record.value)}{headers}"


def printed_by_us(data: bytes) -> Iterator[str]:
    for view in iter_batches(data):
        assert view.crc_is_valid()
        horizon = view.base_timestamp if view.has_delete_horizon else -1
        yield (
            f"batch {view.base_offset}..{view.last_offset} epoch {view.leader_epoch} codec {int(view.codec)}"
            f" time {int(view.timestamp_type)} txn {int(view.is_transactional)} control {int(view.is_control)}"
            f" horizon {horizon} max {view.max_timestamp} producer {view.producer_id} {view.producer_epoch}"
            f" {view.base_sequence}..{view.last_sequence} count {view.count}"
        )
        yield from map(line_of, view)


def test_java_reads_what_we_build(ours: bytes, answer: tuple[list[str], bytes]) -> None:
    assert answer[0] == list(printed_by_us(ours))


def test_we_read_what_java_builds(ours: bytes, answer: tuple[list[str], bytes]) -> None:
    assert list(printed_by_us(answer[1])) == list(printed_by_us(ours))


def test_uncompressed_batches_are_the_same_to_the_byte(ours: bytes, answer: tuple[list[str], bytes]) -> None:
    compared = 0
    for mine, java in zip(iter_batches(ours), iter_batches(answer[1]), strict=True):
        # With log append time Java is not shown the times that the records were created with.
        if mine.codec is Codec.NONE and mine.timestamp_type is TimestampType.CREATE_TIME:
            assert bytes(mine.as_view()) == bytes(java.as_view())
            compared += 1
    assert compared >= 5


def test_a_broker_takes_what_java_compresses(answer: tuple[list[str], bytes]) -> None:
    """Validation walks Java's compressed batches piece by piece and finds the same records."""
    taken = set()
    for view in iter_batches(answer[1]):
        first = BatchView(bytes(view.as_view()))
        plain = first.last_offset_delta == first.count - 1 and first.base_offset == 0
        if plain and not first.has_delete_horizon and first.timestamp_type is TimestampType.CREATE_TIME:
            result = validate_produce(first.as_view(), TopicRules(max_batch_bytes=2**30), 2 * 10**12)
            assert result.max_timestamp == max(record.timestamp for record in first)
            taken.add(first.codec)
    assert len(taken) >= 3
