"""Compaction: what stays, what goes and when, and that an interrupted one does no harm."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.broker.log.checkpoint import read_offsets
from ixion.broker.log.cleaner import Cleaner
from ixion.broker.log.config import LogConfig
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from ixion.broker.log.offset_map import OffsetMap
from ixion.broker.log.prepare import Origin
from ixion.broker.log.reader import read
from ixion.broker.log.segment import Segment
from ixion.broker.log.view import Bound
from ixion.language.records.batches import iter_batches
from ixion.language.records.compression import Codec
from tests.log.journal import Journal, materialize
from tests.log.support import NOW, Box, Clock, QuickFiles, batch, marker, open_transaction, stored

CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=700,
    index_interval_bytes=150,
    min_cleanable_dirty_ratio=0.01,
    delete_retention_ms=1000,
    file_delete_delay_ms=0,
)
MEMORY = 24 * 1000


class Stage:
    """One compacted log in a manager, and its cleaner."""

    def __init__(self, path: Path, config: LogConfig = CONFIG, files: QuickFiles | None = None) -> None:
        self.path = path
        self.clock = Clock()
        self.config = config
        self.manager = LogManager(
            [str(path)], clock_ms=self.clock, config_of=lambda _: self.config, files=files or QuickFiles()
        )
        self.manager.load()
        self.log: Log = self.manager.create("orders", 0)

    def write(self, *pairs: tuple[bytes, bytes | None], codec: Codec = Codec.NONE) -> None:
        data = batch(*[value for _, value in pairs], keys=[key for key, _ in pairs], codec=codec)
        self.log.append_as_leader(data, 0)
        self.log.raise_high_watermark(self.log.end_offset)

    def clean(self, memory: int = MEMORY) -> None:
        self.log.roll()
        Cleaner(self.manager, memory).clean_dirtiest(self.clock.now_ms)

    def live(self) -> list[tuple[int, bytes | None, bytes | None]]:
        found = []
        offset = self.log.log_start
        while data := read(self.log, offset, 1000, Bound.END).records:
            for view in iter_batches(data):
                assert view.crc_is_valid()
                if not view.is_control:
                    found += [(int(record.offset), record.key, record.value) for record in view.records()]
                offset = int(view.last_offset) + 1
        return found


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_the_documented_example(stage: Stage) -> None:
    for pair in [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4"), (b"b", None), (b"z", b"9")]:
        stage.write(pair)
    stage.clean()
    assert stage.live() == [(2, b"a", b"3"), (3, b"c", b"4"), (4, b"b", None), (5, b"z", b"9")]
    stage.clock.now_ms += 1000
    stage.write((b"z", b"10"))
    stage.clean()
    assert stage.live() == [(2, b"a", b"3"), (3, b"c", b"4"), (6, b"z", b"10")]
    assert stage.log.end_offset == 7


def test_a_tombstone_stays_for_delete_retention_ms_after_it_was_first_cleaned(stage: Stage) -> None:
    stage.write((b"a", b"1"))
    stage.write((b"a", None))
    stage.write((b"z", b"1"))
    stage.clock.now_ms += 50_000
    for _ in range(2):  # its clock starts with the first cleaning, not with the write
        stage.clean()
        assert (1, b"a", None) in stage.live()
        stage.write((b"z", b"2"))
        stage.clock.now_ms += 999
    stage.clean()
    assert b"a" not in [key for _, key, _ in stage.live()]


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=4), min_size=1, max_size=40),
    st.sampled_from([24 * 4, 24 * 1000]),
    st.sampled_from(list(Codec)),
)
@settings(max_examples=40, deadline=None)
def test_the_last_record_of_every_key_stays(writes: list[list[tuple[int, bool]]], memory: int, codec: Codec) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder))
        model: list[tuple[int, bytes, bytes | None]] = []
        for number, pairs in enumerate(writes):
            data = [(b"%d" % key, None if dead else b"%d" % number) for key, dead in pairs]
            stage.write(*data, codec=codec)
            model += [(len(model) + at, key, value) for at, (key, value) in enumerate(data)]
            if number % 10 == 9:
                stage.clean(memory)
        before = stage.live()
        for _ in range(8 if memory < 1000 else 1):  # a small map needs several rounds
            stage.clean(memory)
        after = stage.live()
        assert set(after) <= set(before) <= set(model)
        latest = {key: (offset, key, value) for offset, key, value in model}
        assert set(latest.values()) <= set(after)
        if memory > 1000:
            assert len(after) == len(latest)
        assert stage.log.end_offset == len(model)
        end = stage.log.end_offset
        stage.manager.close()
        again = Stage(Path(folder))
        assert again.live() == after
        assert again.log.end_offset == end
        again.manager.abandon()


def test_small_neighbours_become_one(stage: Stage) -> None:
    for number in range(60):
        stage.write((b"k%d" % (number % 3), b"x" * 50))
    stage.log.roll()
    count = len(stage.log.segments)
    stage.clean()
    assert count > 10
    assert [offset for offset, _, _ in stage.live()] == [57, 58, 59]
    stage.write((b"k9", b"x"))
    stage.clean()  # the first round has made them small
    assert len(stage.log.segments) == 2
    stage.manager.look_after()
    assert not list(stage.path.glob("*/*.deleted"))


def test_the_active_segment_and_young_records_are_left_alone(stage: Stage) -> None:
    stage.config = replace(CONFIG, min_compaction_lag_ms=10_000)
    stage.manager.reconfigure("orders")
    for number in range(20):
        stage.write((b"a", b"%d" % number))
    stage.clean()
    assert len(stage.live()) == 20
    stage.clock.now_ms += 10_001
    stage.clean()
    assert len(stage.live()) == 1


def test_an_old_record_makes_a_log_due_however_clean_it_is(stage: Stage) -> None:
    stage.config = replace(CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5000)
    stage.manager.reconfigure("orders")
    for number in range(20):
        stage.write((b"a", b"%d" % number))
    stage.clean()
    assert len(stage.live()) == 20
    stage.clock.now_ms += 5001
    stage.clean()
    assert len(stage.live()) == 1


def test_undecided_transactions_are_left_alone_and_aborted_ones_go(stage: Stage) -> None:
    log = stage.log

    def send(value: bytes, sequence: int, producer: int) -> None:
        data = batch(value, key=b"a", producer=(producer, 0, sequence), transactional=True)
        log.append_as_leader(data, 0)

    def end(producer: int, commit: bool) -> None:
        log.append_as_leader(marker(producer, 0, commit=commit), 0, Origin.COORDINATOR)

    send(b"one", 0, 1)
    end(1, True)
    send(b"two", 1, 1)
    end(1, False)
    send(b"three", 2, 1)
    log.raise_high_watermark(log.end_offset)
    stage.clean()
    assert [value for _, _, value in stage.live()] == [b"one", b"three"]  # the third is undecided
    end(1, True)
    log.raise_high_watermark(log.end_offset)
    stage.write((b"z", b"z"))
    stage.clean()
    assert [value for _, _, value in stage.live()] == [b"three", b"z"]
    kinds = [(int(view.base_offset), view.is_control) for view in iter_batches(read(log, 0, 10_000, Bound.END).records)]
    assert (5, True) in kinds  # the marker of what is left
    stage.manager.close()
    again = Stage(stage.path)
    assert [value for _, _, value in again.live()] == [b"three", b"z"]
    assert again.log.producers.producers[1].last_sequence == 2
    assert open_transaction(again.log.producers) == -1
    again.manager.abandon()


def txn_write(log: Log, producer: int, sequence: int, key: bytes, value: bytes | None) -> None:
    log.append_as_leader(batch(value, key=key, producer=(producer, 0, sequence), transactional=True), 0)


def end_txn(log: Log, producer: int, *, commit: bool) -> None:
    log.append_as_leader(marker(producer, 0, commit=commit), 0, Origin.COORDINATOR)
    log.raise_high_watermark(log.end_offset)


def committed(log: Log) -> dict[bytes, bytes | None]:
    """The last value of every key for a client at read_committed."""
    found: dict[bytes, bytes | None] = {}
    offset = log.log_start
    while True:
        data = read(log, offset, 10_000, Bound.VISIBLE_STABLE)
        if not data.records:
            return found
        hidden = [(txn.producer_id, range(txn.first_offset, txn.last_offset)) for txn in data.aborted or ()]
        for view in iter_batches(data.records):
            offset = int(view.last_offset) + 1
            if view.is_control or any(view.producer_id == each and view.base_offset in part for each, part in hidden):
                continue
            found |= {record.key or b"": record.value for record in view.records()}


@pytest.mark.parametrize("marker_is_sealed", [False, True])
def test_an_abort_in_a_later_segment_leaves_the_committed_value(stage: Stage, marker_is_sealed: bool) -> None:
    log = stage.log
    stage.write((b"a", b"committed"))
    txn_write(log, 1, 0, b"a", b"aborted")
    log.roll()
    end_txn(log, 1, commit=False)
    if marker_is_sealed:
        log.roll()
    stage.write((b"z", b"1"))
    for number in range(4):
        Cleaner(stage.manager, MEMORY).clean_dirtiest(stage.clock.now_ms)
        assert committed(log)[b"a"] == b"committed"
        stage.write((b"z", b"%d" % number))
        log.roll()
        stage.clock.now_ms += 1_001
    stage.manager.abandon()
    for path in stage.path.glob("*/*.snapshot"):
        path.unlink()
    again = Stage(stage.path).log
    again.raise_high_watermark(again.end_offset)
    assert committed(again)[b"a"] == b"committed"
    assert again.last_stable_offset == again.end_offset


def test_the_rest_of_a_segment_is_compacted_once_its_transaction_has_ended(stage: Stage) -> None:
    """Also if nothing else is written: the segment in which the last compaction stopped is dirty behind that."""
    log = stage.log
    stage.write((b"a", b"1"))
    txn_write(log, 1, 0, b"b", b"1")
    stage.write((b"a", b"2"))
    stage.write((b"a", b"3"))
    stage.clean()
    assert len(stage.live()) == 4
    end_txn(log, 1, commit=True)
    cleaner = Cleaner(stage.manager, MEMORY)
    assert cleaner.clean_dirtiest(stage.clock.now_ms) is not None
    assert stage.live() == [(1, b"b", b"1"), (3, b"a", b"3")]
    assert cleaner.clean_dirtiest(stage.clock.now_ms) is None  # and then it is clean


def test_a_marker_outlives_the_last_batch_of_its_transaction(stage: Stage) -> None:
    """Even if it is only the empty one with the producer's sequence: a start would find a transaction without end."""
    log = stage.log
    txn_write(log, 1, 0, b"a", b"aborted")
    log.roll()
    end_txn(log, 1, commit=False)
    log.roll()
    for number in range(5):
        stage.write((b"z", b"%d" % number))
        stage.clean()
        stage.clock.now_ms += 1_001
    stage.manager.abandon()
    for path in stage.path.glob("*/*.snapshot"):
        path.unlink()
    again = Stage(stage.path).log
    again.raise_high_watermark(again.end_offset)
    assert again.producers.producers[1].last_sequence == 0
    assert again.last_stable_offset == again.end_offset


def test_what_is_not_due_yet_replaces_nothing(stage: Stage) -> None:
    """The barrier of a fixed delay; a batch that it divides is not seen yet either."""
    stage.config = replace(CONFIG, delivery_delay_ms=60_000)
    stage.manager.reconfigure("orders")
    log = stage.log
    for pairs in ([(b"a", b"1")], [(b"b", b"2"), (b"a", None)], [(b"z", b"9")]):
        stage.write(*pairs)
        log.roll()
    for visible in (-1, 0, 1, 2):
        log.visible_end = visible
        stage.clean()
        stage.clock.now_ms += 5_000
        assert [key for _, key, _ in stage.live()] == [b"a", b"b", b"a", b"z"]
    log.visible_end = 3
    stage.write((b"z", b"10"))
    stage.clean()
    assert stage.live()[:2] == [(1, b"b", b"2"), (2, b"a", None)], "its time begins when it can be seen"


def test_markers_go_after_their_transactions(stage: Stage) -> None:
    log = stage.log
    for number in range(3):
        data = batch(b"%d" % number, key=b"a", producer=(1, 0, number), transactional=True)
        log.append_as_leader(data, 0)
        log.append_as_leader(marker(1, 0, commit=True), 0, Origin.COORDINATOR)
    log.raise_high_watermark(log.end_offset)

    def markers() -> list[int]:
        found = []
        for segment in log.segments:
            data = segment.handle.read(segment.size, 0)
            found += [int(view.base_offset) for view in iter_batches(data) if view.is_control and view.count]
        return found

    stage.write((b"z", b"z"))
    stage.clean()
    assert markers() == [1, 3, 5]
    for _ in range(2):  # once to see that nothing is left of the transaction, once after the retention
        stage.write((b"z", b"z"))
        stage.clean()
        stage.clock.now_ms += 1001
    stage.write((b"z", b"z"))
    stage.clean()
    assert markers() == [5]


def test_a_producers_last_sequence_survives_its_records(stage: Stage) -> None:
    log = stage.log
    for number in range(5):
        log.append_as_leader(batch(b"x", key=b"a", producer=(1, 3, number)), 0)
    log.raise_high_watermark(log.end_offset)
    stage.write((b"a", b"last"))
    stage.clean()
    assert [value for _, _, value in stage.live()] == [b"last"]
    stage.manager.abandon()
    for path in stage.path.glob("*/*.snapshot"):
        path.unlink()
    again = Stage(stage.path)
    assert again.log.producers.producers[1].last_sequence == 4
    again.manager.abandon()


def test_the_checkpoint_says_how_far_it_got(stage: Stage) -> None:
    for number in range(10):
        stage.write((b"a", b"%d" % number))
    stage.clean()
    path = str(stage.path / "cleaner-offset-checkpoint")
    assert read_offsets(QuickFiles(), path) == {("orders", 0): 10}
    assert Cleaner(stage.manager, MEMORY).clean_dirtiest(NOW) is None
    stage.manager.close()
    for content, is_clean in ((Path(path).read_text(), True), ("nonsense", False)):
        Path(path).write_text(content)
        again = Stage(stage.path)
        again.log.raise_high_watermark(again.log.end_offset)
        assert (Cleaner(again.manager, MEMORY).due(NOW) == []) is is_clean
        again.manager.abandon()


def test_records_that_replace_compacted_ones_are_compacted(stage: Stage) -> None:
    """A truncation lowers the checkpoint, on the disk as well."""
    for number in range(10):
        stage.write((b"a", b"%d" % number))
    stage.clean()
    stage.log.truncate_to(2)
    for number in range(20):
        stage.write((b"b", b"%d" % number))
    stage.log.roll()
    assert read_offsets(QuickFiles(), str(stage.path / "cleaner-offset-checkpoint")) == {("orders", 0): 2}
    assert Cleaner(stage.manager, MEMORY).due(NOW)[0].start == 2
    stage.clean()
    assert [value for _, key, value in stage.live() if key == b"b"] == [b"19"]


def test_a_new_partition_of_a_deleted_name_is_compacted_from_its_beginning(stage: Stage) -> None:
    for number in range(10):
        stage.write((b"a", b"%d" % number))
    stage.clean()
    stage.manager.delete("orders", 0)
    stage.manager.create("orders", 0)
    assert read_offsets(QuickFiles(), str(stage.path / "cleaner-offset-checkpoint")) == {}


def test_a_truncation_under_the_compaction_stops_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        stage.write((b"a", b"%d" % number))
    stage.log.roll()
    from ixion.broker.log import compaction

    part = Cleaner(stage.manager, MEMORY).due(NOW)[0]
    offset_map = OffsetMap(MEMORY)
    end = compaction.build_map(stage.log, part.start, part.end, [], offset_map)
    old = list(stage.log.segments)[:2]
    stage.log.truncate_fully(0)
    fresh = Segment(stage.log.files, stage.log.folder, 0, {}, NOW, ".cleaned")
    fresh.create()
    with pytest.raises(compaction.CompactionAbortedError):
        compaction.swap(stage.log, old, fresh, part.truncations)
    assert not list(stage.path.glob("*/*.cleaned"))
    assert end == 30
    assert stage.live() == []


def test_killed_at_any_step_of_a_compaction(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    journal = Journal(root)
    stage = Stage(root, CONFIG, journal)
    for number in range(60):
        stage.write((b"k%d" % (number % 7), b"%d" % number * 20))
    stage.log.roll()
    before = stage.live()
    first = len(journal.steps)
    stage.clean()
    stage.manager.look_after()
    after = stage.live()
    assert len(after) == 7
    for steps in range(first, len(journal.steps) + 1):
        target = tmp_path / str(steps)
        materialize(journal.steps[:steps], target)
        again = Stage(target)
        found = again.live()
        assert set(after) <= set(found) <= set(before), steps
        assert again.log.end_offset == 60
        assert [offset for offset, _, _ in found] == sorted({offset for offset, _, _ in found})
        again.log.raise_high_watermark(60)
        again.clean()
        assert again.live() == after
        again.manager.abandon()
        shutil.rmtree(target)
    assert len(journal.steps) - first > 20


def test_compact_and_delete_together(stage: Stage) -> None:
    stage.config = replace(CONFIG, cleanup_policy=frozenset({"compact", "delete"}), retention_ms=10_000)
    stage.manager.reconfigure("orders")
    for number in range(20):
        stage.write((b"a", b"%d" % number))
    stage.clean()
    assert len(stage.live()) == 1
    stage.clock.now_ms += 10_001
    stage.manager.look_after()
    assert stage.live() == []
    assert stage.log.log_start == stage.log.end_offset == 20


@pytest.mark.parametrize("position", [64, 9])
def test_a_damaged_log_is_set_aside_and_not_touched(stage: Stage, position: int) -> None:
    for number in range(30):
        stage.write((b"a", b"%d" % number))
    stage.log.roll()
    path = Path(list(stage.log.segments)[1].path(".log"))
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    before = {file.name: file.read_bytes() for file in stage.path.glob("orders-0/*")}
    cleaner = Cleaner(stage.manager, MEMORY)
    assert cleaner.clean_dirtiest(NOW) is None
    assert path.name in cleaner.uncleanable["orders", 0]
    assert {file.name: file.read_bytes() for file in stage.path.glob("orders-0/*")} == before
    assert cleaner.due(NOW) == []


def test_the_map_keeps_the_last_offset_and_its_size() -> None:
    offset_map = OffsetMap(24 * 100)
    assert offset_map.capacity == 90
    for number in range(90):
        offset_map.put(b"%d" % number, number)
    assert offset_map.is_full
    for number in range(90):
        offset_map.put(b"%d" % number, number + 1000)
    assert [offset_map.get(b"%d" % number) for number in range(91)] == [*range(1000, 1090), -1]
    with pytest.raises(ValueError, match="full"):
        offset_map.put(b"one more", 1)
    offset_map.clear()
    assert (offset_map.size, offset_map.get(b"1")) == (0, -1)
    with pytest.raises(ValueError, match="at least"):
        OffsetMap(24)


def test_the_map_grows_with_its_keys_up_to_its_memory() -> None:
    memory = 24 * 200_000
    offset_map = OffsetMap(memory)
    assert offset_map.memory_bytes < memory / 10
    sizes = set()
    for number in range(offset_map.capacity):
        offset_map.put(b"%d" % number, number)
        sizes.add(offset_map.memory_bytes)
    assert len(sizes) > 2
    assert max(sizes) == memory
    assert offset_map.is_full
    assert all(offset_map.get(b"%d" % number) == number for number in range(offset_map.capacity))
    assert offset_map.get(b"another") == -1


def test_offset_zero_is_an_offset() -> None:
    offset_map = OffsetMap(24 * 4)
    offset_map.put(b"a", 0)
    assert (offset_map.get(b"a"), offset_map.size) == (0, 1)


def test_a_reader_inside_a_replaced_segment_goes_on(box: Box, tmp_path: Path) -> None:
    stage = Stage(tmp_path / "x")
    for number in range(30):
        stage.write((b"a", b"%d" % number))
    stage.clean()
    # Offsets that are gone lead to the next one that is there.
    assert stored(stage.log, 3, Bound.END)[0][0] == 29


class FailingRenames(QuickFiles):
    """A disk on which, once armed, only so many renames still work."""

    def __init__(self) -> None:
        self.left = -1

    def rename(self, old: str, new: str) -> None:
        if self.left == 0:
            raise OSError(5, "Input/output error", new)
        self.left -= 1
        super().rename(old, new)


@pytest.mark.parametrize("renames", range(12))
def test_a_disk_that_fails_in_the_middle_of_a_swap_loses_nothing(tmp_path: Path, renames: int) -> None:
    files = FailingRenames()
    stage = Stage(tmp_path, CONFIG, files)
    for number in range(30):
        stage.write((b"k%d" % (number % 3), b"%d" % number * 10))
    stage.log.roll()
    before, end = stage.live(), stage.log.end_offset
    files.left = renames
    assert Cleaner(stage.manager, MEMORY).clean_dirtiest(NOW) is None
    assert stage.manager.directories[0].state.offline
    stage.manager.abandon()
    again = Stage(tmp_path)
    found = again.live()
    latest = {key: (offset, key, value) for offset, key, value in before}
    assert set(latest.values()) <= set(found) <= set(before)
    assert again.log.end_offset == end
    again.manager.abandon()
