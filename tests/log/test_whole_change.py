"""A coordinator's change that is larger than max.message.bytes: one batch when appended, recovered and compacted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ixion.broker.log.prepare import Origin
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.log.support import Box, batch, stored
from tests.log.test_compaction import CONFIG, Stage

SMALL = replace(CONFIG, max_message_bytes=500, segment_bytes=20_000)
KEYS = [b"%04d" % number for number in range(100)]


def change(value: bytes) -> bytes:
    return batch(*[value] * len(KEYS), keys=KEYS)


def test_its_limit_is_the_segment(tmp_path: Path) -> None:
    log = Box(tmp_path, SMALL).open()
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(change(b"v"), 0, Origin.COORDINATOR)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    log.append_as_leader(change(b"v"), 0, Origin.WHOLE_CHANGE)
    assert log.end_offset == len(KEYS)
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(change(b"v" * 300), 0, Origin.WHOLE_CHANGE)
    assert refused.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.end_offset == len(KEYS)


def test_recovery_finds_all_of_it_or_nothing(tmp_path: Path) -> None:
    box = Box(tmp_path, SMALL)
    log = box.open()
    log.append_as_leader(change(b"1"), 0, Origin.WHOLE_CHANGE)
    log.append_as_leader(change(b"2"), 0, Origin.WHOLE_CHANGE)
    log.close()
    (file,) = box.folder.glob("*.log")
    whole = file.read_bytes()
    for cut in range(len(whole) // 2, len(whole), 97):
        file.write_bytes(whole[:cut])
        log = box.open()
        assert [value for _, value in stored(log)] == [b"1"] * len(KEYS)
        log.close()


def test_compaction_keeps_the_last_value_of_every_key(tmp_path: Path) -> None:
    stage = Stage(tmp_path, SMALL)
    for value in (b"1", b"2"):
        stage.log.append_as_leader(change(value), 0, Origin.WHOLE_CHANGE)
    stage.log.raise_high_watermark(stage.log.end_offset)
    stage.clean()
    assert [value for _, _, value in stage.live()] == [b"2"] * len(KEYS)
