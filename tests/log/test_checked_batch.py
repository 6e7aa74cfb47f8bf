"""Which batches the event loop checks itself, and that a checked batch is appended as an unchecked one would be."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ixion.broker.log.checked_batch import SMALL, check_batch, check_on_loop, needs_check
from ixion.broker.log.config import LogConfig
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.compression import Codec
from ixion.language.records.faults import LongWorkError
from ixion.language.records.validate import TopicRules, validate_produce
from tests.log.support import NOW, Box, batch, stored
from tests.records import forge

RULES = TopicRules(max_batch_bytes=1 << 24)


def of(count: int, value: bytes = b"", codec: Codec = Codec.NONE, headers: int = 0) -> bytes:
    builder = BatchBuilder(codec=codec, max_bytes=1 << 30)
    for _ in range(count):
        builder.append(None, value, [("", None)] * headers, timestamp=NOW)
    return builder.build()


@pytest.mark.parametrize(
    ("records", "rules"),
    [
        (of(100_000), RULES),
        (of(1, headers=400_000), RULES),
        (of(10, bytes(200_000), Codec.ZSTD), RULES),
        (of(10, bytes(200_000), Codec.SNAPPY), RULES),
        (of(100_000, codec=Codec.GZIP), RULES),
        (of(1, bytes(20_000)), TopicRules(codec=Codec.GZIP)),
        (of(1, bytes(20_000), Codec.ZSTD), TopicRules(codec=Codec.LZ4)),
        (of(1, bytes(5_000)), TopicRules(codec=Codec.ZSTD, level=22)),
        (of(1, bytes(5_000)), TopicRules(codec=Codec.GZIP, level=9)),
        (of(201), TopicRules(max_delay_ms=1)),
        (of(1, headers=201), TopicRules(max_delay_ms=1)),
    ],
    ids=range(11),
)
def test_too_long_for_the_loop(records: bytes, rules: TopicRules) -> None:
    assert needs_check(records, rules)
    assert check_on_loop(records, rules, NOW) is None
    assert check_batch(records, rules, NOW).refusal is None


@pytest.mark.parametrize(
    ("records", "rules"),
    [
        (of(1000, bytes(1000)), RULES),
        (of(100, bytes(1000), Codec.GZIP), RULES),
        (of(1, bytes(5_000)), TopicRules(codec=Codec.GZIP)),
        (of(3), TopicRules(max_delay_ms=1)),
    ],
    ids=range(4),
)
def test_short_enough_for_the_loop(records: bytes, rules: TopicRules) -> None:
    assert needs_check(records, rules)
    checked = check_on_loop(records, rules, NOW)
    assert checked is not None
    assert checked.refusal is None


def test_small_batches_as_they_are_need_no_check() -> None:
    assert not needs_check(of(1, bytes(SMALL - 1_000)), RULES)
    assert not needs_check(b"", RULES)
    assert not needs_check(bytes(30), TopicRules(codec=Codec.GZIP))
    assert needs_check(of(1, bytes(SMALL)), RULES)


def test_the_walk_stops_at_its_allowance() -> None:
    for count, headers, allowed, enough in ((10, 0, 10, True), (11, 0, 10, False), (2, 4, 10, True), (2, 5, 11, False)):
        records = of(count, headers=headers)
        if enough:
            assert validate_produce(records, RULES, NOW, allowed=allowed).count == count
        else:
            with pytest.raises(LongWorkError):
                validate_produce(records, RULES, NOW, allowed=allowed)


def test_a_refusal_comes_when_the_batch_is_appended(tmp_path: Path) -> None:
    log = Box(tmp_path).open()
    bad = forge.batch(forge.record(), count=2, attributes=0)
    checked = check_batch(bad, log.rules, NOW)
    assert checked.refusal is not None
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(bad, 0, checked=checked)
    assert refused.value.code == ErrorCode.INVALID_RECORD
    assert log.end_offset == 0


@pytest.mark.parametrize("codec", ["producer", "gzip", "uncompressed", "zstd"])
@pytest.mark.parametrize("stamp", ["CreateTime", "LogAppendTime"])
def test_checked_and_unchecked_appends_write_the_same(tmp_path: Path, codec: str, stamp: str) -> None:
    config = LogConfig(compression_type=codec, message_timestamp_type=stamp)
    logs = [Box(tmp_path / str(number), config=config).open() for number in range(2)]
    for _ in range(20):
        values = [random.randbytes(random.randrange(200)) for _ in range(random.randrange(1, 5))]
        records = batch(*values, timestamp=NOW - random.randrange(5), codec=random.choice(list(Codec)))
        logs[0].append_as_leader(records, 3)
        logs[1].append_as_leader(records, 3, checked=check_batch(records, logs[1].rules, NOW))
    files = [next(Path(log.folder).glob("*.log")).read_bytes() for log in logs]
    assert files[0] == files[1]
    assert stored(logs[0]) == stored(logs[1])


def test_other_settings_meanwhile_refuse_it(tmp_path: Path) -> None:
    log = Box(tmp_path).open()
    records = batch(b"v", codec=Codec.GZIP)
    checked = check_batch(records, log.rules, NOW)
    log.reconfigure(LogConfig(compression_type="zstd"))
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(records, 0, checked=checked)
    assert refused.value.code == ErrorCode.LEADER_NOT_AVAILABLE
