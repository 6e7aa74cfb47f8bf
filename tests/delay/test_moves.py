"""Delayed records move with their partition to another log directory, and fail with their own."""

from __future__ import annotations

import os
import shutil
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.broker.schedules.pages import RECORDS, Pages
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.delay.world import DelayWorld, after, cancel
from tests.log.support import QuickFiles

HOUR_MS = 3_600_000


@pytest.fixture
def world(tmp_path: Path) -> Iterator[DelayWorld]:
    made = DelayWorld(tmp_path, folders=2)
    made.start()
    yield made
    made.close()


def place(world: DelayWorld) -> int:
    """The directory of the partition, which is that of its sibling."""
    assert world.sibling.directory is world.target.directory
    return world.paths.index(world.target.directory.path)


def test_waiting_records_move_with_their_partition(world: DelayWorld) -> None:
    there = 1 - place(world)
    world.send(after(b"a", 1_000), after(b"b", HOUR_MS, id=b"b"), after(b"c", HOUR_MS))
    world.move(there)
    assert place(world) == there
    assert world.send(after(b"d", 2_000)).code == ErrorCode.NONE
    world.advance(1_000)
    world.send(cancel(b"b"))
    world.advance(1_000)
    assert [value for value in world.values() if value] == [b"a", b"d"]
    world.move(1 - there)
    world = world.restart(down_ms=HOUR_MS)
    world.settle()
    assert [value for value in world.values() if value] == [b"a", b"d", b"c"]
    assert world.waiting == 0
    world.close()


def test_a_start_without_the_old_directory_finds_all_that_waits(world: DelayWorld) -> None:
    there = 1 - place(world)
    world.send(*[after(b"%d" % number, HOUR_MS) for number in range(10)])
    world.move(there)
    world.close()
    shutil.rmtree(world.paths[1 - there])
    again = world.restart(down_ms=HOUR_MS)
    again.settle()
    assert again.values() == [b"%d" % number for number in range(10)]
    again.close()


def test_records_that_wait_on_the_disk_move_as_well(world: DelayWorld) -> None:
    here = place(world)
    for _ in range(3):
        world.send(*[after(b"v", 40 * HOUR_MS + number) for number in range(RECORDS)])
    pages = world.state.pending.pages
    assert pages is not None
    assert pages._file is not None
    world.move(1 - here)
    assert pages._folder == world.sibling.folder
    world.advance(41 * HOUR_MS)
    assert world.waiting == 0
    assert len(world.values()) == 3 * RECORDS


def test_pages_that_a_snapshot_reads_stay_readable(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    pages = Pages(str(tmp_path / "a"))
    columns = array("q", range(100)), array("I", range(100))
    page = pages.write(*columns)
    pages.freeze()
    pages.move(str(tmp_path / "b"))
    assert pages.read(page, 100) == columns
    other = pages.write(*columns)
    pages.thaw()
    assert pages.read(other, 100) == pages.read(page, 100) == columns


def test_a_sibling_that_an_older_version_left_behind_follows_at_the_next_start(world: DelayWorld) -> None:
    here = place(world)
    world.send(after(b"x", HOUR_MS))
    world.close()
    shutil.move(f"{world.paths[here]}/__delay.t-0", f"{world.paths[1 - here]}/__delay.t-0")
    again = world.restart()
    assert place(again) == here
    assert again.waiting == 1
    again.advance(HOUR_MS)
    assert again.values() == [b"x"]
    again.close()


def test_a_partition_fails_with_the_directory_of_its_delayed_records(world: DelayWorld) -> None:
    here = place(world)
    world.send(after(b"x", HOUR_MS))
    sibling = world.sibling
    world.logs.logs["t", 0].raise_high_watermark(world.target.end_offset)
    # They are in two directories, as a crash may leave them.
    moved = world.logs.create("other", 0, None, world.logs.directories[1 - here])
    assert moved.directory is not sibling.directory
    world.logs.logs["__delay.t", 0] = moved
    world.replicas.partitions["__delay.t", 0].log = moved
    moved.directory.take_offline("it burns")
    gone = world.replicas.directory_failed(moved.directory.path)
    assert set(gone) == {("t", 0), ("__delay.t", 0)}
    assert ("t", 0) in world.replicas.offline
    assert world.replicas.partition("t", 0) is None
    with pytest.raises(KafkaError, match="may be in"):
        world.logs.of("t", 0).check_none_offline()
    world.set(delivery_delay_mode="off")
    with pytest.raises(KafkaError, match="may be in"):
        world.logs.of("t", 0).check_none_offline()


class Dead(QuickFiles):
    """A disk of two that cannot be read at the start."""

    def __init__(self, path: str) -> None:
        self.path = path

    def list_dir(self, path: str) -> list[os.DirEntry[str]]:
        if path == self.path:
            raise OSError(5, "Input/output error")
        return super().list_dir(path)


def test_no_empty_sibling_is_made_while_a_directory_is_offline(tmp_path: Path) -> None:
    world = DelayWorld(tmp_path, folders=2)
    world.start()
    world.send(after(b"x", HOUR_MS))
    here = place(world)
    world.close()
    other = tmp_path / f"logs{1 - here}"
    shutil.move(tmp_path / f"logs{here}" / "__delay.t-0", other / "__delay.t-0")
    broken = DelayWorld(tmp_path, files=Dead(str(other)), folders=2)
    partition = broken.lead()
    for _ in range(5):
        broken.advance(1_000)
    (result,) = broken.produce(b"v")
    assert result.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert ("__delay.t", 0) not in broken.logs.logs
    assert partition.log.end_offset == 1
    broken.close()
    again = DelayWorld(tmp_path, folders=2)
    again.start()
    assert again.waiting == 1
    again.close()


def test_a_move_that_a_stop_interrupted_goes_on_with_the_first_role(world: DelayWorld) -> None:
    there = 1 - place(world)
    world.send(after(b"x", HOUR_MS))
    world.begin_move(there)
    world.replicas.moves.cancel_all()
    while world.flush():
        pass
    assert place(world) == 1 - there
    world.logs.close()
    again = world.restart()
    assert place(again) == there
    assert again.logs.future_logs == {}
    assert again.waiting == 1
    again.close()


def test_a_copy_without_a_partition_is_deleted(world: DelayWorld) -> None:
    world.logs.create("gone", 0, bytes(16), world.logs.directories[0])
    world.logs.of("gone", 0).make_copies(world.logs.directories[1])
    world.replicas.moves.drop_unused(world.replicas.partitions)
    while world.flush():
        pass
    assert world.logs.future_logs == {}
