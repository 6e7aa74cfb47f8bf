"""A crash at every step of a busy life: whatever happens, the log that comes up again is a true one.

After a kill, every step that was made counts: the log holds what it held before the operation under way or after it.
After a power failure it may end earlier, but never below the recovery point, and what it holds is what was written.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from ixion.broker.log.config import LogConfig
from ixion.broker.log.log import Log
from ixion.broker.log.prepare import Origin
from ixion.broker.log.retention import delete_doomed, retain
from tests.log.journal import Journal, materialize
from tests.log.support import NOW, Box, batch, marker, stored

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150, retention_bytes=2000, file_delete_delay_ms=0)

Records = list[tuple[int, bytes]]


@dataclass(slots=True)
class Moment:
    """The log after an operation, and how many steps it had taken by then."""

    steps: int
    records: Records
    log_start: int
    end_offset: int
    recovery_point: int
    producers: dict[int, tuple[int, int]]


def look(log: Log, journal: Journal) -> Moment:
    producers = {entry.producer_id: (entry.epoch, entry.last_sequence) for entry in log.producers.producers.values()}
    return Moment(len(journal.steps), stored(log), log.log_start, log.end_offset, log.recovery_point, producers)


def live(log: Log, journal: Journal) -> list[Moment]:
    """Appends, rolls, flushes, transactions, truncations, deletions, retention."""
    moments = [look(log, journal)]
    number = 0

    def done() -> None:
        moments.append(look(log, journal))

    def append(count: int) -> None:
        nonlocal number
        for _ in range(count):
            log.append_as_leader(batch(b"%d" % number * 20, b"x", producer=(1, 0, number * 2 % 1000)), number // 20)
            number += 1
            done()

    append(12)
    log.flush()
    done()
    append(5)
    log.append_as_leader(batch(b"t", producer=(2, 0, 0), transactional=True), 1)
    done()
    log.append_as_leader(marker(2, 0, commit=False), 1, Origin.COORDINATOR)
    done()
    append(3)
    log.roll()
    done()
    log.flush(log.end_offset - 3)
    done()
    log.truncate_to(log.end_offset - 9)
    done()
    number -= 20  # the truncated ones come again
    log.producers.producers.pop(1, None)
    append(10)
    log.raise_high_watermark(log.end_offset)
    log.raise_log_start(15)
    done()
    retain(log, NOW)
    done()
    append(2)
    delete_doomed(log, NOW)
    log.flush()
    done()
    append(4)
    return moments


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> tuple[Journal, list[Moment]]:
    root = tmp_path_factory.mktemp("life")
    journal = Journal(root)
    box = Box(root, CONFIG, journal)
    log = box.open()
    moments = live(log, journal)
    log.abandon()
    assert len(log.segments) > 3
    return journal, moments


def start_of(records: Records) -> int:
    return records[0][0] if records else 0


def test_killed_at_any_step(life: tuple[Journal, list[Moment]], tmp_path: Path) -> None:
    journal, moments = life
    for steps in range(moments[0].steps, len(journal.steps) + 1):
        after = min((moment for moment in moments if moment.steps >= steps), key=lambda moment: moment.steps)
        for torn in (None, 30) if journal.steps[steps - 1][0] == "write" else (None,):
            target = tmp_path / f"{steps}-{torn}"
            made = steps if torn is None else steps - 1
            before = max((moment for moment in moments if moment.steps <= made), key=lambda moment: moment.steps)
            materialize(journal.steps[:steps], target, torn=torn)
            log = Box(target, CONFIG).open(recovery_point=before.recovery_point, log_start=before.log_start)
            found = stored(log)
            start = log.log_start
            candidates = [[record for record in moment.records if record[0] >= start] for moment in (before, after)]
            # A truncation takes segment after segment away, from the end on.
            between = found == candidates[0][: len(found)] and len(found) >= len(candidates[1])
            assert found in candidates or (between and before.end_offset > after.end_offset), (steps, torn)
            log.append_as_leader(batch(b"life goes on"), 9)
            assert stored(log)[-1] == (log.end_offset - 1, b"life goes on")
            log.abandon()
            shutil.rmtree(target)


def test_the_power_fails_at_any_step(life: tuple[Journal, list[Moment]], tmp_path: Path) -> None:
    journal, moments = life
    power = random.Random(7)
    for steps in range(moments[0].steps, len(journal.steps) + 1):
        before = max((moment for moment in moments if moment.steps <= steps), key=lambda moment: moment.steps)
        after = min((moment for moment in moments if moment.steps >= steps), key=lambda moment: moment.steps)
        point = min(before.recovery_point, after.recovery_point)
        target = tmp_path / str(steps)
        materialize(journal.steps[:steps], target, power)
        log = Box(target, CONFIG).open(recovery_point=point, log_start=min(before.log_start, after.log_start))
        found = stored(log)
        history = {record for moment in (before, after) for record in moment.records}
        assert set(found) <= history, steps
        offsets = [offset for offset, _ in found]
        kept = [offset for offset, _ in before.records if offset < point and offset >= log.log_start]
        assert offsets[: len(kept)] == kept, steps
        assert log.end_offset >= point
        log.append_as_leader(batch(b"life goes on"), 9)
        log.abandon()
        shutil.rmtree(target)


def test_flush_always_keeps_every_acknowledged_record_through_a_power_failure(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=600, index_interval_bytes=150, flush_messages=1)
    journal = Journal(tmp_path / "root")
    log = Box(tmp_path / "root", config, journal).open()
    acknowledged = [(len(journal.steps), 0)]
    for number in range(20):
        assert log.append_as_leader(batch(b"%d" % number * 20), number // 8).flush_due
        log.flush()
        acknowledged.append((len(journal.steps), number + 1))
    log.abandon()
    power = random.Random(3)
    for steps in range(acknowledged[0][0], len(journal.steps) + 1):
        safe = max(count for at, count in acknowledged if at <= steps)
        target = tmp_path / str(steps)
        materialize(journal.steps[:steps], target, power)
        again = Box(target, config).open()  # the checkpoint of the recovery point may be old: from the beginning
        assert [value for _, value in stored(again)][:safe] == [b"%d" % number * 20 for number in range(safe)]
        again.abandon()
        shutil.rmtree(target)


def test_producers_are_the_same_after_a_kill(life: tuple[Journal, list[Moment]], tmp_path: Path) -> None:
    journal, moments = life
    for moment in moments[:30:3]:
        target = tmp_path / str(moment.steps)
        materialize(journal.steps[: moment.steps], target)
        log = Box(target, CONFIG).open(recovery_point=moment.recovery_point)
        found = {entry.producer_id: (entry.epoch, entry.last_sequence) for entry in log.producers.producers.values()}
        assert found == moment.producers
        log.abandon()
