"""Settings and downtimes that come while records wait: each record is delivered, and kept from then on."""

from __future__ import annotations

import logging
import random
from dataclasses import replace
from pathlib import Path

import pytest

from ixion.language.model.errors import ErrorCode
from tests.delay.test_target import SCHEDULE, TargetWorld
from tests.delay.world import RECORD, DelayWorld, after, batches_of

HOUR_MS = 3_600_000


@pytest.mark.parametrize("down_ms", [2 * HOUR_MS, 30 * 24 * HOUR_MS])
def test_retention_counts_from_a_delivery_that_is_late(tmp_path: Path, down_ms: int) -> None:
    world = DelayWorld(tmp_path, replace(RECORD, retention_ms=HOUR_MS, file_delete_delay_ms=0))
    world.start()
    world.send(after(b"x", 60_000))
    world = world.restart(down_ms=down_ms)
    world.settle()
    delivered_ms = world.now_ms()
    (record,) = [record for view in batches_of(world.target) for record in view.records()]
    assert record.timestamp == delivered_ms
    world.advance(HOUR_MS)
    world.logs.look_after()
    assert world.values() == [b"x"]
    world.advance(1)
    world.logs.look_after()
    assert world.values() == []
    world.close()


def test_a_late_delivery_to_another_topic_has_its_time(tmp_path: Path) -> None:
    world = TargetWorld(tmp_path, SCHEDULE)
    world.start()
    world.send(after(b"x", 1_000))
    world.clock.advance(5 * HOUR_MS)
    world = world.again()
    assert [(record.value, record.timestamp) for record in world.delivered()] == [(b"x", world.now_ms())]
    world.close()


@pytest.mark.parametrize("seed", range(3))
def test_records_that_no_longer_fit_a_segment_or_a_batch_are_delivered(world: DelayWorld, seed: int) -> None:
    chance = random.Random(seed)
    values = [chance.randbytes(chance.choice((10, 400, 5_000))) for _ in range(12)]
    for value in values:
        assert world.send(after(value, 1_000)).code == ErrorCode.NONE
    world.set(segment_bytes=chance.choice((300, 700)), max_message_bytes=chance.choice((200, 1 << 20)))
    world.advance(1_000)
    assert world.values() == values
    assert world.waiting == 0
    world.send((b"now", []))
    again = world.restart()
    assert again.values() == [*values, b"now"]
    again.close()


def test_a_recurring_record_that_no_longer_fits_a_segment_recurs(world: DelayWorld) -> None:
    value = b"v" * 2_000
    world.send((value, [("x-schedule-every", b"10s"), ("x-schedule-id", b"i")]))
    world.set(segment_bytes=500)
    world.advance(10_000)
    world.advance(10_000)
    assert world.values() == [value, value]
    again = world.restart(down_ms=10_000)
    again.settle()
    assert again.values() == [value] * 3
    again.close()


def test_a_fault_that_repeats_is_logged_once(world: DelayWorld, caplog: pytest.LogCaptureFixture) -> None:
    world.send(after(b"x", 1_000))
    caplog.set_level(logging.WARNING)
    world.target.directory.full = True
    for _ in range(20):
        world.advance(1_000)
    assert len([each for each in caplog.records if "cannot be delivered yet" in each.getMessage()]) == 1
    world.target.directory.full = False
    world.advance(1_000)
    assert world.values() == [b"x"]
    world.send(after(b"y", 1_000))
    world.target.directory.full = True
    world.advance(3_000)
    assert len([each for each in caplog.records if "cannot be delivered yet" in each.getMessage()]) == 2
