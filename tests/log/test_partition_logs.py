"""The logs of a partition are changed together: settings, compaction, deletion and failures while a move runs."""

from __future__ import annotations

import random
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ixion.broker.log.cleaner import Cleaner
from ixion.broker.log.config import DAY_MS, HOUR_MS, LogConfig, sibling_config
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from ixion.broker.log.mover import MoveCancelledError, Mover
from ixion.broker.log.partition_logs import Pair
from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batches import iter_batches
from tests.log.support import NOW, batch, stored
from tests.log.test_mover import CONFIG, STEPS, Killed, LastMinute, Stage

SIBLING = "__delay.orders"
DELAYS = replace(CONFIG, delivery_delay_mode="record")


class PairStage(Stage):
    """A partition with a sibling; the same things happen to both."""

    def start(self) -> LogManager:
        manager = super().start()
        manager.config_of = lambda topic: self.config if topic == "orders" else sibling_config(self.config)
        return manager

    def create_pair(self, records: int = 12, directory: int = 0) -> tuple[Log, Log]:
        self.config = DELAYS
        log = self.create(0)
        sibling = self.manager.create(
            SIBLING, 0, log.topic_id, self.manager.directories[directory], sibling_config(self.config)
        )
        for number in range(records):
            self.append(log, sibling, b"%d" % number * 10)
        return log, sibling

    def append(self, log: Log, sibling: Log, value: bytes) -> None:
        """A note first, then what it is about."""
        sibling.append_as_follower(batch(b"note " + value, base_offset=log.end_offset, leader_epoch=1))
        sibling.raise_high_watermark(sibling.end_offset)
        log.append_as_leader(batch(value), 1)
        log.raise_high_watermark(log.end_offset)

    @property
    def sibling(self) -> Log:
        return self.manager.logs[SIBLING, 0]

    @property
    def log(self) -> Log:
        return self.manager.logs["orders", 0]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def pair(tmp_path: Path) -> PairStage:
    return PairStage(tmp_path)


# Settings.


@pytest.mark.parametrize("at", STEPS)
def test_settings_that_change_during_a_move_are_those_of_the_new_log(stage: Stage, at: int) -> None:
    stage.config = replace(CONFIG, retention_ms=HOUR_MS)
    stage.create()
    longer = replace(CONFIG, retention_ms=7 * DAY_MS)

    def keep_longer() -> None:
        stage.config = longer
        stage.manager.reconfigure("orders")

    stage.meddle_once(at, keep_longer, uses_copy=True)
    moved = stage.mover().run()
    assert moved.config is longer
    stage.clock.now_ms += 2 * HOUR_MS
    stage.manager.look_after()
    assert len(stored(moved)) == 30


def test_settings_that_change_when_a_copy_is_made_are_those_of_the_copy(stage: Stage) -> None:
    """Between the moment in which the copy got its settings and that in which others can find it."""
    log = stage.create()
    newer = replace(CONFIG, retention_ms=DAY_MS)
    real = stage.manager.make

    def make(*given):  # type: ignore[no-untyped-def]
        made = real(*given)
        stage.config = newer
        stage.manager.reconfigure("orders")
        return made

    stage.manager.make = make  # type: ignore[method-assign]
    moved = stage.mover().run()
    assert log.config is newer
    assert moved.config is newer


def test_settings_of_all_topics_reach_siblings_and_copies(pair: PairStage) -> None:
    pair.create_pair()
    pair.copies()
    pair.config = replace(DELAYS, segment_bytes=777, index_interval_bytes=333)
    for _ in pair.manager.reconfigure_all():
        pass
    logs = pair.manager.of("orders", 0)
    assert [log.config.segment_bytes for log in [*logs.in_use, *logs.copies]] == [777] * 4
    assert [log.config.delays_records for log in [*logs.in_use, *logs.copies]] == [True, False, True, False]


# Compaction.

COMPACTED = LogConfig(
    segment_bytes=300,
    cleanup_policy=frozenset({"compact"}),
    min_cleanable_dirty_ratio=0.01,
    delete_retention_ms=0,
    file_delete_delay_ms=0,
)


def newest(log: Log) -> dict[bytes, bytes]:
    """The table that a reader makes of a compacted log."""
    found: dict[bytes, bytes] = {}
    offset = log.log_start
    while offset < log.end_offset:
        for view in iter_batches(read(log, offset, 1 << 20, Bound.END).records):
            for record in view.records():
                key = bytes(record.key or b"")
                if record.value is None:
                    found.pop(key, None)
                else:
                    found[key] = bytes(record.value)
            offset = int(view.last_offset) + 1
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("at", [*STEPS, 24, 40])
def test_deleted_keys_do_not_come_back_with_a_move(stage: Stage, at: int, seed: int) -> None:
    chance = random.Random(seed * 100 + at)
    stage.config = COMPACTED
    log = stage.create(0)
    expected: dict[bytes, bytes] = {}

    def write(count: int) -> None:
        for _ in range(count):
            key = b"k%d" % chance.randrange(5)
            value = chance.choice((None, chance.randbytes(20)))
            log.append_as_leader(batch(value, key=key), 0)
            expected.pop(key, None)
            if value is not None:
                expected[key] = value
        log.raise_high_watermark(log.end_offset)

    write(30)
    cleaner = Cleaner(stage.manager, 24 * 1000)

    def compact() -> None:
        write(10)
        log.roll()
        for later in range(3):  # tombstones go with the second compaction
            stage.clock.now_ms += DAY_MS
            cleaner.clean_dirtiest(NOW + later * DAY_MS)
            log.append_as_leader(batch(b"filler", key=b"filler"), 0)
            log.raise_high_watermark(log.end_offset)
            log.roll()
        expected[b"filler"] = b"filler"

    stage.meddle_once(at, compact)
    moved = stage.mover().run()
    assert newest(moved) == expected
    moved.roll()
    later_ms = NOW + 10 * DAY_MS
    while cleaner.clean_dirtiest(later_ms) is not None:
        later_ms += DAY_MS
    assert newest(moved) == expected
    assert moved.segments.first.size < 5_000  # it is compacted again after the move


def test_a_move_that_fails_lets_the_cleaner_go_on(stage: Stage) -> None:
    stage.config = COMPACTED
    log = stage.create()
    mover = stage.mover()
    mover.cancel()
    with pytest.raises(MoveCancelledError):
        mover.run()
    assert Cleaner(stage.manager, 24 * 1000).clean_dirtiest(NOW) is not None
    assert log is stage.manager.get("orders", 0)


# Deletion.


def test_a_topic_that_is_deleted_in_the_last_step_of_a_move_stays_deleted(stage: Stage) -> None:
    """Thread a: the move is about to replace the log. Thread b: the deletion has found the log, and not closed it."""
    stage.create()
    manager = stage.manager
    last_step, found, ended = threading.Event(), threading.Event(), threading.Event()
    faults: list[BaseException] = []

    def wait() -> None:
        last_step.set()
        found.wait(60)

    def move() -> None:
        try:
            LastMinute(stage, wait).run()
        except KafkaError as error:
            faults.append(error)
        finally:
            ended.set()

    real = manager.retire

    def retire(log: Log) -> None:
        if not found.is_set():
            found.set()
            ended.wait(60)
        real(log)

    manager.retire = retire  # type: ignore[method-assign]
    mover = threading.Thread(target=move)
    mover.start()
    last_step.wait(60)
    manager.delete("orders", 0)
    mover.join(60)
    assert manager.logs == {}
    assert manager.future_logs == {}
    assert all(name.endswith("-delete") for names in stage.folders() for name in names)
    assert len(faults) == 1
    again = manager.create("orders", 0, bytes(16))
    assert again.append_as_leader(batch(b"new"), 0).first_offset == 0


@pytest.mark.parametrize("at", STEPS)
def test_a_deletion_during_a_move_leaves_nothing(pair: PairStage, at: int) -> None:
    pair.create_pair()
    pair.meddle_once(at, lambda: pair.manager.delete("orders", 0), uses_copy=True)
    with pytest.raises(KafkaError):
        pair.mover().run()
    assert pair.manager.logs == {}
    assert pair.manager.future_logs == {}
    pair.manager.abandon()
    pair.start()
    assert pair.manager.logs == {}
    assert pair.manager.future_logs == {}


def test_a_topic_that_is_made_anew_before_a_move_has_ended_stays(pair: PairStage) -> None:
    """The copy has replaced the log, and is being flushed. The old folder has the name of the new topic's."""
    pair.create_pair()
    manager = pair.manager

    class Late(Mover):
        def _retire(self, pairs: list[Pair]) -> None:
            manager.delete("orders", 0)
            new = manager.create("orders", 0, bytes(15) + b"\2", manager.directories[0])
            new.append_as_leader(batch(b"new"), 0)
            super()._retire(pairs)

    Late(manager, "orders", 0, manager.directories[1]).run()
    assert stored(pair.log) == [(0, b"new")]
    pair.manager.close()
    pair.start()
    assert stored(pair.log) == [(0, b"new")]
    assert list(pair.manager.logs) == [("orders", 0)]


def test_a_topic_that_is_deleted_takes_the_folders_that_a_move_left(pair: PairStage) -> None:
    log, _ = pair.create_pair()
    pair.manager.retire_replaced = lambda log: None  # type: ignore[method-assign]
    pair.mover().run()
    assert pair.log is not log
    pair.manager.delete("orders", 0)
    assert all(name.endswith("-delete") for names in pair.folders() for name in names)
    assert pair.manager.replaced == {}


def test_no_log_is_created_while_folders_of_its_name_are_renamed(pair: PairStage) -> None:
    log, _ = pair.create_pair()
    manager = pair.manager
    logs = manager.of("orders", 0)
    held: list[bool] = []
    logs.make_copies(manager.directories[1])
    pair.files.meddle = lambda _: held.append(manager.checkpoints.lock._is_owned())  # type: ignore[attr-defined]
    logs.drop_copies()
    assert len(held) > 1
    manager.replaced["orders", 0] = log
    manager.retire_replaced(log)
    assert len(held) > 3
    assert all(held)


def test_copies_of_a_deleted_topic_are_not_those_of_a_new_one(pair: PairStage) -> None:
    """Their directory was offline when the topic was deleted."""
    pair.create_pair()
    manager = pair.manager
    assert len(manager.of("orders", 0).make_copies(manager.directories[1])) == 2
    manager.directories[1].state.take_offline("it burns")
    manager.delete("orders", 0)
    manager.abandon()
    manager = pair.start()
    assert len(manager.future_logs) == 2
    new = manager.create("orders", 0, bytes(16), manager.directories[0])
    new.append_as_leader(batch(b"new"), 0)
    assert stored(pair.mover().run()) == [(0, b"new")]
    assert manager.future_logs == {}
    manager.close()


# The sibling.


def test_the_sibling_moves_with_its_partition(pair: PairStage) -> None:
    log, sibling = pair.create_pair()
    before = stored(log), stored(sibling)
    arrived: list[Log] = []
    Mover(pair.manager, "orders", 0, pair.manager.directories[1], arrived.append).run()
    assert arrived == [pair.log, pair.sibling]
    assert {each.directory.path for each in arrived} == {pair.paths[1]}
    assert (stored(pair.log), stored(pair.sibling)) == before
    assert pair.sibling.topic_id == log.topic_id
    assert log.closed
    assert sibling.closed
    pair.manager.close()
    shutil.rmtree(pair.paths[0])  # the disk that it has left
    pair.start()
    assert (stored(pair.log), stored(pair.sibling)) == before


def test_a_sibling_that_was_left_behind_follows(pair: PairStage) -> None:
    log, _ = pair.create_pair(directory=1)
    notes = stored(pair.sibling)
    assert pair.mover(0).run() is log
    assert not log.closed
    assert pair.sibling.directory.path == pair.paths[0]
    assert stored(pair.sibling) == notes
    assert pair.folders()[1] == [] or all(name.endswith("-delete") for name in pair.folders()[1])


@pytest.mark.parametrize("at", STEPS)
def test_a_sibling_that_is_made_during_the_move_moves_along(pair: PairStage, at: int) -> None:
    pair.config = DELAYS
    log = pair.create()

    def make() -> None:
        sibling = pair.manager.create(
            SIBLING, 0, log.topic_id, pair.manager.directories[0], sibling_config(pair.config)
        )
        pair.append(log, sibling, b"delayed")

    pair.meddle_once(at, make)
    pair.mover().run()
    assert pair.log.directory.path == pair.sibling.directory.path == pair.paths[1]
    assert [value for _, value in stored(pair.sibling)] == [b"note delayed"]
    assert len(stored(pair.log)) == 31


@pytest.mark.parametrize("at", [*STEPS, 24, 32, 40])
def test_appends_and_truncations_of_both_during_the_move(pair: PairStage, at: int) -> None:
    log, sibling = pair.create_pair()

    def go_on() -> None:
        sibling.truncate_to(7)
        log.truncate_to(7)
        for number in range(9):
            pair.append(log, sibling, b"other %d" % number)

    pair.meddle_once(at, go_on)
    pair.mover().run()
    values = [value for _, value in stored(pair.log)]
    assert values[7:] in ([b"other %d" % number for number in range(9)], [b"%d" % n * 10 for n in range(7, 12)])
    assert [value for _, value in stored(pair.sibling)] == [b"note " + value for value in values]
    assert (pair.log.end_offset, pair.sibling.end_offset) == (log.end_offset, sibling.end_offset)


def test_a_pair_that_is_killed_at_any_step_of_a_move_is_whole(tmp_path: Path) -> None:
    files = Killed(tmp_path / "root", tmp_path / "copies")
    stage = PairStage(tmp_path / "root", files)
    log, sibling = stage.create_pair(4)
    stage.manager.checkpoints.write_all()
    records, notes = stored(log), stored(sibling)
    files.count = 0
    stage.mover().run()
    stage.append(stage.log, stage.sibling, b"later")
    stage.clock.now_ms += 1000
    stage.manager.look_after()
    more = [(4, b"later")], [(4, b"note later")]
    for step in range(files.count):
        again = PairStage(tmp_path / "copies" / str(step))
        assert stored(again.log) in (records, records + more[0]), step
        assert stored(again.sibling) in (notes, notes + more[1]), step
        assert again.sibling.end_offset >= again.log.end_offset, step
        assert again.sibling.topic_id == again.log.topic_id == log.topic_id
        expected = stored(again.log), stored(again.sibling)
        again.mover().run()
        assert (stored(again.log), stored(again.sibling)) == expected, step
        assert again.log.directory is again.sibling.directory, step
        again.manager.close()
        shutil.rmtree(again.root)
    assert files.count > 50


# Directories that are gone.


def test_no_empty_log_replaces_one_that_may_be_offline(pair: PairStage) -> None:
    log, _ = pair.create_pair(directory=1)
    pair.manager.directories[1].state.take_offline("it burns")
    logs = pair.manager.of("orders", 0)
    with pytest.raises(KafkaError, match="delayed records may be in"):
        logs.check_none_offline()
    assert not pair.manager.is_made("orders", 0, log.topic_id or b"")
    with pytest.raises(KafkaError, match="its log may be in") as caught:
        pair.manager.of("other", 0).check_none_offline()
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    pair.manager.create("fresh", 0, bytes(16))
    pair.manager.of("fresh", 0).check_none_offline()
    assert pair.manager.is_made("fresh", 0, bytes(16))


def test_a_destination_that_fails_leaves_the_pair_where_it_is(pair: PairStage) -> None:
    log, sibling = pair.create_pair()
    pair.meddle_once(12, lambda: pair.manager.directories[1].state.take_offline("it burns"))
    with pytest.raises(KafkaError):
        pair.mover().run()
    assert (pair.log, pair.sibling) == (log, sibling)
    assert pair.manager.future_logs == {}
    pair.append(log, sibling, b"more")
