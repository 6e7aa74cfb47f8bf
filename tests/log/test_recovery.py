"""Loading what a crash, a bad disk or an interrupted operation left behind."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ixion.broker.log.config import LogConfig
from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.files import Part
from ixion.broker.log.log import Log
from ixion.broker.log.prepare import Origin
from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batches import iter_batches
from tests.log.faults import FaultyFiles
from tests.log.support import NOW, Box, QuickFiles, batch, marker, open_transaction, stored

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150)


def fill(log: Log) -> None:
    """Five segments with everything in them: producers, an aborted and an open transaction, three epochs."""
    for number in range(25):
        log.append_as_leader(
            batch(b"%d" % number * 10, b"x", producer=(1, 0, number * 2), timestamp=NOW + number), number // 10
        )
        if number == 8:
            log.append_as_leader(batch(b"t", producer=(2, 0, 0), transactional=True), 0)
        if number == 12:
            log.append_as_leader(marker(2, 0, commit=False), 1, Origin.COORDINATOR)
        if number == 20:
            log.append_as_leader(batch(b"u", producer=(2, 0, 1), transactional=True), 2)


@pytest.fixture
def full(box: Box) -> Box:
    box.config = CONFIG
    log = box.open()
    fill(log)
    log.raise_high_watermark(log.end_offset)
    log.close()
    return box


def facts(log: Log) -> tuple[object, ...]:
    return (
        stored(log),
        log.end_offset,
        log.epochs.entries(),
        [txn.fields() for segment in log.segments for txn in segment.txn_index.entries()],
        open_transaction(log.producers),
        {entry.producer_id: entry.last_sequence for entry in log.producers.producers.values()},
    )


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint"])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", ["missing", "empty", "garbage", "longer"])
def test_indexes_and_snapshots_can_be_lost(full: Box, suffix: str, clean: bool, damage: str) -> None:
    log = full.open(clean=True)
    expected = facts(log)
    log.close()
    for path in [path for path in full.folder.iterdir() if path.name.endswith(suffix)]:
        if damage == "missing":
            path.unlink()
        elif damage == "empty":
            path.write_bytes(b"")
        elif damage == "garbage":
            path.write_bytes(b"\xff" * 240)
        else:
            path.write_bytes(path.read_bytes() + b"\xff" * 36)
    log = full.open(clean=clean)
    found = facts(log)
    if clean and suffix == ".txnindex" and damage in ("missing", "empty"):
        # Most segments have no aborted transaction; that one is missing shows only when the segment is recovered.
        found = (*found[:3], expected[3], *found[4:])
    assert found == expected
    log.append_as_leader(batch(b"more", producer=(1, 0, 50)), 2)
    log.abandon()


@pytest.mark.parametrize("size", [1, 60, 61, 100])
def test_a_torn_tail_is_cut(full: Box, size: int) -> None:
    log = full.open(clean=True)
    expected = facts(log)
    log.abandon()
    last = max(full.folder.glob("*.log"))
    torn = batch(b"never acknowledged", b"y", base_offset=51, producer=(1, 0, 50))[:size]
    with last.open("ab") as file:
        file.write(torn)
    log = full.open(clean=False)
    assert facts(log) == expected
    log.append_as_leader(batch(b"more", producer=(1, 0, 50)), 2)
    assert stored(log)[-1] == (expected[1], b"more")


def test_damage_cuts_the_log_there_and_later_segments_go(full: Box) -> None:
    log = full.open(clean=True)
    expected = stored(log)
    bases = [segment.base_offset for segment in log.segments]
    log.abandon()
    path = full.folder / f"{bases[2]:020d}.log"
    data = bytearray(path.read_bytes())
    (second,) = [view for number, view in enumerate(iter_batches(bytes(data))) if number == 1]
    data[second.position + 70] ^= 4
    path.write_bytes(data)
    log = full.open(clean=False)
    assert [segment.base_offset for segment in log.segments] == bases[:3]
    assert stored(log) == [record for record in expected if record[0] < second.base_offset]
    assert log.end_offset == second.base_offset
    assert sorted({int(path.name[:20]) for path in full.folder.glob("0*.*index")}) == bases[:3]


@pytest.mark.parametrize("batches", [0, 1], ids=["empty", "short"])
def test_a_loss_of_power_leaves_no_gap_between_segments(full: Box, batches: int) -> None:
    """A file that was not synced may end at a whole batch, or be empty, although a later file is there."""
    bases, expected = lose_the_end_of_the_second(full, batches)
    log = full.open(clean=False)
    ends = bases[1] if batches == 0 else log.segments.active.next_offset()
    assert bases[1] <= log.end_offset == ends < bases[2]
    assert [segment.base_offset for segment in log.segments] == bases[:2]
    assert stored(log) == [record for record in expected if record[0] < ends]
    log.append_as_leader(batch(b"more"), 2)
    assert stored(log)[-1] == (ends, b"more")


@pytest.mark.parametrize(
    ("policy", "point", "start"),
    [("compact", 0, 0), ("delete", -1, 0), ("delete", 0, 2)],
    ids=["compaction leaves gaps", "below the recovery point", "below the log start"],
)
def test_other_gaps_between_segments_are_no_damage(full: Box, policy: str, point: int, start: int) -> None:
    bases, expected = lose_the_end_of_the_second(full, 0)
    full.config = replace(CONFIG, cleanup_policy=frozenset({policy}))
    log = full.open(clean=False, recovery_point=bases[point] if point else 0, log_start=bases[start])
    assert stored(log, bases[2]) == [record for record in expected if record[0] >= bases[2]]


def lose_the_end_of_the_second(full: Box, batches: int) -> tuple[list[int], list[tuple[int, bytes]]]:
    """Only so many batches of the second segment stay. Returns the base offsets of all, and the records before."""
    log = full.open(clean=True)
    expected, bases = stored(log), [segment.base_offset for segment in log.segments]
    log.abandon()
    path = full.folder / f"{bases[1]:020d}.log"
    views = list(iter_batches(path.read_bytes()))
    assert len(views) > batches
    path.write_bytes(path.read_bytes()[: views[batches].position])
    return bases, expected


def test_damage_below_the_recovery_point_is_found_when_it_is_read(full: Box) -> None:
    log = full.open(clean=True)
    end = log.end_offset
    log.abandon()
    path = full.folder / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[70] ^= 4
    path.write_bytes(data)
    log = full.open(clean=False, recovery_point=end)
    with pytest.raises(KafkaError) as caught:
        read(log, 0, 1, Bound.END)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert stored(log, 2)[0][0] == 2


def read_or_mend(log: Log, offset: int) -> bytes:
    """A client tries again when the log says that an index is damaged; by then it was rebuilt."""
    try:
        return read(log, offset, 1, Bound.END).records
    except KafkaError as error:
        if error.code != ErrorCode.KAFKA_STORAGE_ERROR:
            raise
    assert not log.mend()
    return read(log, offset, 1, Bound.END).records


@pytest.mark.parametrize(
    "suffix", [".log", ".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint"]
)
@pytest.mark.parametrize("clean", [True, False])
def test_flipped_bits_are_never_served(full: Box, tmp_path: Path, suffix: str, clean: bool) -> None:
    log = full.open(clean=True)
    truth = set(stored(log))
    log.close()
    dice = random.Random(11)
    for round_number in range(40):
        target = Box(tmp_path / str(round_number), CONFIG)
        shutil.copytree(full.folder, target.folder)
        path = dice.choice([path for path in target.folder.iterdir() if path.name.endswith(suffix)])
        data = bytearray(path.read_bytes())
        at = dice.randrange(len(data))
        if suffix == ".log":
            heads = [view.position for view in iter_batches(bytes(data))]
            if any(at - head in range(8) or at - head in range(12, 16) for head in heads):
                continue  # base offset and epoch have no checksum in Kafka's format
        data[at] ^= 1 << dice.randrange(8)
        path.write_bytes(data)
        log = target.open(clean=clean)
        try:
            for offset in range(log.log_start, log.end_offset):
                try:
                    views = list(iter_batches(read_or_mend(log, offset)))
                except KafkaError as error:
                    if (suffix, error.code) == (".log", ErrorCode.CORRUPT_MESSAGE):
                        continue
                    raise
                assert views[0].crc_is_valid()
                if not views[0].is_control:
                    assert {(int(record.offset), record.value) for record in views[0].records()} <= truth
        finally:
            log.abandon()
            shutil.rmtree(target.path)


def test_an_index_that_lies_is_rebuilt(full: Box) -> None:
    path = full.folder / f"{0:020d}.index"
    good = path.read_bytes()
    lying = bytearray(good)
    lying[3] = 0  # the first entry now claims offset 0 for a later position
    path.write_bytes(lying)
    log = full.open(clean=True)
    assert read_or_mend(log, 0)
    assert stored(log)[0] == (0, b"0" * 10)
    assert log.segments.first.index.lookup(0) == 0


def test_files_of_an_interrupted_deletion_go(full: Box) -> None:
    first = full.folder / f"{0:020d}.log"
    first.rename(first.with_suffix(".log.deleted"))
    log = full.open(clean=True)
    assert log.log_start == log.segments.first.base_offset > 0
    assert not [path for path in full.folder.iterdir() if path.name.startswith("0" * 20)]


def test_a_finished_compaction_is_completed(full: Box) -> None:
    log = full.open(clean=True)
    expected = stored(log)
    bases = [segment.base_offset for segment in log.segments]
    log.close()
    # Segments 0 and 1 have become one, with the name of the first; the crash came before the old ones were renamed.
    merged = b"".join((full.folder / f"{base:020d}.log").read_bytes() for base in bases[:2])
    (full.folder / f"{0:020d}.log.swap").write_bytes(merged)
    log = full.open(clean=True)
    assert [segment.base_offset for segment in log.segments] == [0, *bases[2:]]
    assert stored(log) == expected
    assert not list(full.folder.glob("*.swap"))


def test_an_unfinished_compaction_is_dropped(full: Box) -> None:
    log = full.open(clean=True)
    expected = stored(log)
    second = list(log.segments)[1].base_offset
    log.close()
    (full.folder / f"{second:020d}.log.swap").write_bytes(b"half")
    (full.folder / f"{0:020d}.log.cleaned").write_bytes(b"half")
    log = full.open(clean=True)
    assert stored(log) == expected
    assert not list(full.folder.glob("*.swap"))
    assert not list(full.folder.glob("*.cleaned"))


def test_a_log_that_ends_before_its_start_starts_over(full: Box) -> None:
    log = full.open(clean=True, log_start=1000)
    assert (log.log_start, log.end_offset, log.high_watermark) == (1000, 1000, 1000)
    assert log.append_as_leader(batch(b"a"), 3).first_offset == 1000
    assert log.epochs.entries() == [(3, 1000)]


def test_recovery_does_not_read_below_the_recovery_point(full: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    log = full.open(clean=True)
    third = list(log.segments)[2].base_offset
    end = log.end_offset
    log.abandon()
    log = full.open(clean=False, recovery_point=third)
    assert [segment.trusted for segment in log.segments][:3] == [False, False, True]
    assert (log.recovery_point, log.end_offset) == (third, end)


def test_the_high_watermark_comes_from_the_checkpoint_and_stays_within_the_log(full: Box) -> None:
    log = full.open(clean=True, high_watermark=7)
    assert log.high_watermark == 7
    end = log.end_offset
    log.abandon()
    assert full.open(clean=True, high_watermark=10_000).high_watermark == end


def test_a_damaged_topic_id_is_named(full: Box) -> None:
    (full.folder / "partition.metadata").write_text("version: 0\ntopic_id: nonsense")
    with pytest.raises(CorruptFileError, match=r"partition\.metadata"):
        full.open(clean=True)


def test_epochs_lost_with_their_file_are_read_from_the_batches(full: Box) -> None:
    log = full.open(clean=True)
    expected = log.epochs.entries()
    assert len(expected) == 3
    log.close()
    (full.folder / "leader-epoch-checkpoint").write_text("0\n1\nnonsense\n")
    assert full.open(clean=True).epochs.entries() == expected


class NamingFiles(QuickFiles):
    """Notes each name that a start makes or replaces."""

    def __init__(self) -> None:
        self.named: list[str] = []

    def rename(self, old: str, new: str) -> None:
        self.named.append(Path(new).name)
        super().rename(old, new)


def test_a_log_killed_before_its_first_flush_replaces_no_index_and_no_epochs(box: Box) -> None:
    """With very many partitions, making two files for each took long at a start after a kill."""
    box.config = LogConfig(index_interval_bytes=150)
    log = box.open()
    fill(log)
    expected = facts(log)
    log.abandon()
    box.files = files = NamingFiles()
    log = box.open(clean=False)
    assert (facts(log), files.named) == (expected, ["00000000000000000000.txnindex"]), "a transaction was aborted"
    log.close()
    assert "leader-epoch-checkpoint" in files.named, "the close writes it"
    again = box.open(clean=True)
    assert facts(again) == expected
    assert len(again.segments.active.index.file.view()) > 0


@pytest.mark.parametrize("recovery_point", [0, 1, 20, 40])
def test_epochs_lost_after_a_kill_are_read_wherever_recovery_begins(full: Box, recovery_point: int) -> None:
    log = full.open(clean=True)
    expected = facts(log)
    assert len(log.segments) == 3
    log.abandon()
    (full.folder / "leader-epoch-checkpoint").unlink()
    log = full.open(clean=False, recovery_point=recovery_point)
    assert facts(log) == expected
    log.flush()
    log.abandon()
    assert facts(full.open(clean=False, recovery_point=log.end_offset)) == expected


class CountingFiles(QuickFiles):
    def __init__(self) -> None:
        self.bytes_read = 0

    def read(self, fd: int, size: int, position: int) -> bytes:
        data = super().read(fd, size, position)
        self.bytes_read += len(data)
        return data


def test_a_clean_log_is_opened_without_reading_it(box: Box) -> None:
    box.config = LogConfig(segment_bytes=20_000, index_interval_bytes=0)
    log = box.open()
    for number in range(800):
        log.append_as_leader(batch(b"x" * 20, timestamp=NOW + number), 0)
    log.close()
    assert len(log.segments) > 3
    indexes = sum(path.stat().st_size for path in box.folder.glob("*index"))
    files = CountingFiles()
    box.files = files
    again = box.open(clean=True)
    assert again.end_offset == 800
    assert files.bytes_read < 500 < indexes
    assert len(stored(again)) == 800


def test_a_truncation_inside_a_batch_does_not_move_the_log_start_back(box: Box) -> None:
    log = box.open()
    log.append_as_leader(batch(b"a", b"b", b"c", b"d"), 0)
    log.raise_high_watermark(4)
    log.raise_log_start(2)
    log.truncate_to(3)
    assert (log.log_start, log.end_offset, log.high_watermark) == (2, 2, 2)
    assert log.append_as_leader(batch(b"e"), 1).first_offset == 2
    assert stored(log) == [(2, b"e")]
    log.abandon()
    again = box.open(log_start=2)
    assert stored(again) == [(2, b"e")]
    assert again.end_offset == 3


class ChangesFiles(QuickFiles):
    """Notes what changes a file or a name."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, object]] = []

    def write(self, fd: int, position: int, parts: list[Part]) -> None:
        self.changes.append(("write", position))
        super().write(fd, position, parts)

    def truncate(self, fd: int, size: int) -> None:
        self.changes.append(("truncate", size))
        super().truncate(fd, size)

    def rename(self, old: str, new: str) -> None:
        self.changes.append(("rename", new))
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self.changes.append(("remove", path))
        super().remove(path)


def test_a_log_that_a_crash_left_whole_is_recovered_without_changing_a_file(box: Box) -> None:
    """A broker with a thousand partitions starts again after a kill by reading, not by writing thousands of files."""
    log = box.open()
    for number in range(30):
        log.append_as_leader(batch(b"x" * 200, producer=(number % 3, 0, number // 3)), 0)
    log.append_as_leader(batch(b"t", producer=(9, 0, 0), transactional=True), 1)
    log.abandon()
    once = box.open()  # which writes the indexes that were in memory
    known = facts(once)
    once.assign_epoch(2, once.end_offset)  # as the leader that it becomes
    once.abandon()
    files = ChangesFiles()
    box.files = files
    again = box.open()
    again.assign_epoch(3, again.end_offset)
    assert files.changes == []
    again.epochs.truncate_end(again.end_offset)
    assert facts(again) == known


def test_producers_that_recovery_reads_from_the_log_count_as_used_at_the_start(box: Box) -> None:
    """An old timestamp may be that of a producer which loads old records, and repeats its last batch now."""
    log = box.open()
    log.append_as_leader(batch(b"old", producer=(1, 0, 0)), 0)
    box.clock.now_ms += box.config.producer_id_expiration_ms
    log.append_as_leader(batch(b"new", producer=(2, 0, 0), timestamp=box.clock.now_ms), 0)
    log.abandon()
    again = box.open()
    assert list(again.producers.producers) == [1, 2]
    box.clock.now_ms += box.config.producer_id_expiration_ms
    assert again.expire_producers(box.clock.now_ms) == 2


def test_a_forgotten_transaction_makes_no_damage_of_later_batches(box: Box) -> None:
    """A truncation forgets a transaction that lies below the log start; recovery reads its batches, too."""
    log = box.open()
    log.append_as_leader(batch(b"deleted", producer=(1, 0, 0), transactional=True), 0)
    log.append_as_leader(batch(b"a"), 0)
    log.append_as_leader(batch(b"truncated"), 0)
    log.raise_high_watermark(2)
    log.raise_log_start(1)
    log.truncate_to(2)
    log.append_as_leader(batch(b"b", producer=(1, 0, 1)), 0)
    log.append_as_leader(batch(b"c"), 0)
    follower = Box(box.path / "follower", box.config).open()
    follower.append_as_follower(batch(b"deleted", producer=(1, 0, 0), transactional=True))
    follower.append_as_follower(bytes(read(log, 1, 10_000, Bound.END).records))
    log.abandon()
    again = box.open(log_start=1)
    for each in (again, follower):
        assert stored(each, 1) == [(1, b"a"), (2, b"b"), (3, b"c")]
        each.abandon()


def test_a_cut_of_recovery_is_synced_before_the_first_append(full: Box) -> None:
    """A power failure could bring it back, among the records that were appended in its place."""
    log = full.open(clean=True)
    second, end = list(log.segments)[1], log.end_offset
    log.abandon()
    path = full.folder / f"{second.base_offset:020d}.log"
    path.write_bytes(path.read_bytes()[:-1])
    full.files = files = FaultyFiles()
    files.arm()
    log = full.open()
    calls = files.disarm()
    last_change = max(at for at, call in enumerate(calls) if call in ("truncate", "rename", "remove"))
    cut = len(calls) - calls[::-1].index("truncate")
    assert "sync" in calls[cut:]
    assert "sync_dir" in calls[last_change:] or "sync_dir" in calls[cut:]
    assert log.end_offset < end
    log.abandon()
