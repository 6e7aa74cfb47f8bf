"""A8: a start takes what waits from a snapshot, and does without it if it is old, damaged or of another history."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

import ixion.broker.schedules.schedules as owner
from ixion.broker.schedules import snapshot
from ixion.broker.schedules.journal import Journal
from ixion.broker.schedules.loading import load
from ixion.broker.schedules.note import Note
from ixion.broker.schedules.state import State
from tests.delay.world import DelayWorld, after, cancel

LARGE = int(os.environ.get("IXION_DELAY_RECORDS", "3000"))
DAY_MS = 86_400_000


@pytest.fixture
def world(tmp_path: Path) -> Iterator[DelayWorld]:
    made = DelayWorld(tmp_path)
    made.start()
    yield made
    made.close()


def write_snapshot(world: DelayWorld) -> Path:
    captured = snapshot.capture(world.state)
    assert captured is not None
    snapshot.write(captured, world.sibling.folder)
    if captured.pages is not None:
        captured.pages.thaw()
    return Path(world.sibling.folder) / snapshot.NAME


def content(state: State) -> tuple[object, ...]:
    """All that matters of a state."""
    due: list[tuple[int, int]] = []
    for level in state.pending.levels:
        for number, bucket in level.buckets.items():
            while bucket.count:
                due += [(number * level.width + time_ms, offset) for offset, time_ms in bucket.take_some(bucket.count)]
    due += state.pending.at_hand()
    return sorted(due), state.count, state.size, state.open, state.ids.count


def fresh(world: DelayWorld) -> State:
    """What a start finds."""
    schedule = world.schedules.get(("t", 0))
    assert schedule is not None
    return load(schedule.journal, world.target)


def fill(world: DelayWorld, count: int) -> None:
    random = Random(3)
    for number in range(count // 50):
        sent = [after(b"v", random.randrange(1, 3 * DAY_MS)) for _ in range(48)]
        sent += [after(b"named", random.randrange(1, 600_000), id=b"%d" % (number % 20)) for _ in range(2)]
        world.send(*sent)
    world.send(after(b"open", 5_000, id=b"held"), producer=(7, 0, 0), transactional=True)
    world.send(cancel(b"@17"), cancel(b"3"))


def test_a8_a_start_from_a_snapshot_knows_what_reading_every_note_would_tell(
    world: DelayWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(world, LARGE)
    path = write_snapshot(world)
    world.send(after(b"behind it", 1_000))
    applied: list[int] = []
    real = Journal.notes

    def counted(journal: Journal, offset: int) -> Iterator[Note]:
        for note in real(journal, offset):
            applied.append(note.offset)
            yield note

    monkeypatch.setattr(Journal, "notes", counted)
    quick = fresh(world)
    assert len(applied) == 1, "only the note behind the snapshot is read"
    path.unlink()
    slow = fresh(world)
    assert len(applied) > LARGE // 2
    assert content(quick) == content(slow)


def test_a_record_of_a_snapshot_is_cancelled_by_its_id_and_delivered_once(world: DelayWorld) -> None:
    world.send(after(b"one", 1_000, id=b"a"), after(b"two", 1_000, id=b"b"), after(b"far", 40 * DAY_MS))
    write_snapshot(world)
    world = world.restart()
    assert world.waiting == 3
    world.send(cancel(b"a"))
    world.advance(1_000)
    assert world.values() == [b"two"]
    world = world.restart()
    assert world.waiting == 1
    world.close()


@pytest.mark.parametrize("fault", ["a bit", "half", "nothing", "other note"])
def test_a_snapshot_that_is_not_right_is_not_used(
    world: DelayWorld, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.send(after(b"one", 1_000), after(b"two", 2_000))
    path = write_snapshot(world)
    data = bytearray(path.read_bytes())
    if fault == "a bit":
        data[len(data) // 2] ^= 1
    elif fault == "half":
        del data[len(data) // 2 :]
    elif fault == "nothing":
        data.clear()
    else:  # the sibling was cut, and another leader has written something else there
        monkeypatch.setattr(snapshot, "note_at", lambda _journal, offset: (offset, 12345, 0))
    path.write_bytes(data)
    found = fresh(world)
    assert found.snapshot_end == 0
    assert found.count == 2


def test_a_snapshot_of_truncated_notes_is_not_used(world: DelayWorld) -> None:
    world.send(after(b"one", 1_000))
    world.send(after(b"two", 2_000))
    write_snapshot(world)
    world.target.truncate_to(1)
    found = fresh(world)
    assert (found.snapshot_end, found.count) == (0, 1)


def test_a_snapshot_is_made_from_time_to_time_and_at_a_stop(world: DelayWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "SNAPSHOT_NOTES", 10)
    monkeypatch.setattr(owner, "LAST_SNAPSHOT", 1)
    path = Path(world.sibling.folder) / snapshot.NAME
    world.send(*[after(b"v", DAY_MS) for _ in range(20)])
    for _ in range(31):
        world.advance(1_000)
    world.flush()
    assert world.state.snapshot_end == 20
    before = path.read_bytes()
    world.send(after(b"v", DAY_MS))
    world.schedules.stop()
    assert path.read_bytes() != before
    found = fresh(world)
    assert (found.snapshot_end, found.count) == (world.sibling.end_offset, 21)


def test_pages_that_a_snapshot_reads_are_not_written_over(world: DelayWorld) -> None:
    world.send(*[after(b"v", DAY_MS * 2) for _ in range(2_500)])
    captured = snapshot.capture(world.state)
    assert captured is not None
    pages = [page for _, page, _ in captured.parts if page >= 0]
    assert pages
    assert captured.pages is not None
    kept = [captured.pages.read_bytes(page, 1024) for page in pages]
    for offset in range(0, 2_000, 100):
        world.send(cancel(b"@%d" % offset))
    assert [captured.pages.read_bytes(page, 1024) for page in pages] == kept
    captured.pages.thaw()


def test_a_disk_that_takes_no_pages_leaves_them_in_memory(world: DelayWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "no space")

    monkeypatch.setattr(os, "pwrite", full)
    world.send(*[after(b"v", DAY_MS * 2) for _ in range(2_500)])
    assert world.waiting == 2_500
    world.advance(DAY_MS * 2)
    assert len(world.values()) == 2_500


def test_no_snapshot_is_made_while_a_large_transaction_is_open(
    world: DelayWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its notes would be written one by one, in one turn of the loop."""
    monkeypatch.setattr(snapshot, "MOST_HELD", 10)
    world.send(*(after(b"x", 5_000) for _ in range(11)), producer=(7, 0, 0), transactional=True)
    assert snapshot.capture(world.state) is None
    world.mark(7, 0, commit=True)
    assert snapshot.capture(world.state) is not None


def test_upkeep_of_very_many_partitions_is_done_in_turns(world: DelayWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    monkeypatch.setattr(owner.Schedules, "_look_after", lambda _, schedule, __: looked.append(schedule))
    for number in range(3):
        world.lead(f"other-{number}")
    while world.flush():
        pass
    steps = world.schedules._upkeep()
    next(steps)
    assert len(looked) == 1
    assert len([*steps]) == 3
    assert len(looked) == 4
