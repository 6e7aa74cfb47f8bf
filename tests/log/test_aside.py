"""What recovery takes out of a log is set aside, and what is sound stays where it is."""

from __future__ import annotations

import errno
import logging
import shutil
from pathlib import Path

import pytest

from ixion.broker.log.aside import KEPT_MS
from ixion.broker.log.config import LogConfig
from ixion.broker.log.retention import retain
from ixion.language.model.errors import KafkaError
from tests.log.faults import FaultyFiles
from tests.log.support import NOW, Box, batch, stored

CONFIG = LogConfig(segment_bytes=300, index_interval_bytes=100)


def fill(box: Box, count: int = 12) -> list[tuple[int, bytes]]:
    box.config = CONFIG
    log = box.open()
    for number in range(count):
        log.append_as_leader(batch(b"%d" % number * 20), 0)
    assert len(log.segments) > 4
    records = stored(log)
    log.close()
    return records


def logs(box: Box) -> list[Path]:
    return sorted(box.folder.glob("0*.log"))


def aside(box: Box) -> list[Path]:
    return sorted(box.folder.glob("aside-*"))


@pytest.mark.parametrize("policy", [{"delete"}, {"compact"}, {"delete", "compact"}, set()])
def test_a_hole_between_dense_segments_is_no_damage(box: Box, policy: set[str]) -> None:
    records = fill(box)
    box.config = LogConfig(segment_bytes=300, cleanup_policy=frozenset(policy))
    gone = logs(box)[2]
    lost = range(int(gone.stem), int(logs(box)[3].stem))
    gone.unlink()
    log = box.open(recovery_point=0)
    assert stored(log) == [record for record in records if record[0] not in lost]
    assert log.append_as_leader(batch(b"more"), 0).first_offset == len(records)
    log.abandon()


@pytest.mark.parametrize("compacted", [False, True])
def test_a_hole_that_compaction_left_stays_when_the_topic_is_compacted_no_more(box: Box, compacted: bool) -> None:
    records = fill(box)
    short = logs(box)[2]
    begin, end = int(short.stem), int(logs(box)[3].stem)
    short.write_bytes(b"")  # as a loss of power leaves a file, or a compaction a segment whose records are superseded
    log = box.open(recovery_point=0, compacted_to=end if compacted else end - 1)
    assert stored(log) == [record for record in records if record[0] < begin or (compacted and record[0] >= end)]
    assert bool(aside(box)) is not compacted
    log.abandon()


def test_a_hole_within_a_segment_is_no_damage(box: Box) -> None:
    log = box.open()
    log.append_as_follower(batch(b"a", base_offset=0) + batch(b"b", base_offset=7) + batch(b"c", base_offset=9))
    log.append_as_follower(batch(b"d", base_offset=20))
    log.abandon()
    assert stored(box.open(recovery_point=0)) == [(0, b"a"), (7, b"b"), (9, b"c"), (20, b"d")]
    assert not aside(box)


def damage(box: Box) -> dict[str, bytes]:
    """Breaks the first batch of the second segment; gives what every log file held before that."""
    paths = logs(box)
    data = bytearray(paths[1].read_bytes())
    data[70] ^= 1
    paths[1].write_bytes(data)
    return {path.name: path.read_bytes() for path in paths}


def test_segments_after_damage_are_set_aside_as_they_were(box: Box, caplog: pytest.LogCaptureFixture) -> None:
    records = fill(box)
    before = damage(box)
    names = sorted(before)
    with caplog.at_level(logging.WARNING):
        log = box.open()
    assert stored(log) == [record for record in records if record[0] < int(names[1][:20])]
    kept = {path.name.removeprefix("aside-").rpartition(".")[0]: path.read_bytes() for path in aside(box)}
    assert kept[names[1] + ".0"] == before[names[1]]  # its end, which is all of it
    for name in names[2:]:
        assert kept[name + ".0"] == before[name]
        assert f"{name} is set aside as aside-{name}.0.{NOW}: it comes after the damage" in caplog.text
    # They are not looked at again, nor in the way of what comes to the same offsets.
    for number in range(12):
        log.append_as_leader(batch(b"again%d" % number), 1)
    expected = stored(log)
    log.abandon()
    found = aside(box)
    assert stored(box.open()) == expected
    assert aside(box) == found


def test_the_same_file_can_be_set_aside_twice(box: Box) -> None:
    for _ in range(2):
        fill(box)
        damage(box)
        box.open().abandon()
        for path in logs(box):
            path.unlink()
    names = [path.name for path in aside(box) if ".log.0." in path.name]
    assert len(names) > 6
    assert {name.rpartition(".")[2] for name in names} == {str(NOW), str(NOW + 1)}


@pytest.mark.parametrize(("tail", "is_kept"), [(b"torn", True), (bytes(500), False), (bytes(300) + b"x", True)])
def test_the_end_that_is_cut_off_is_kept_if_it_holds_anything(box: Box, tail: bytes, is_kept: bool) -> None:
    records = fill(box)
    last = logs(box)[-1]
    size = last.stat().st_size
    with last.open("ab") as file:
        file.write(tail)
    log = box.open()
    assert stored(log) == records
    assert [path.read_bytes() for path in aside(box)] == ([tail] if is_kept else [])
    assert [path.name for path in aside(box)] == ([f"aside-{last.name}.{size}.{NOW}"] if is_kept else [])


def test_an_index_without_a_log_is_set_aside(box: Box) -> None:
    fill(box)
    path = logs(box)[1]
    path.unlink()
    index = path.with_suffix(".index").read_bytes()
    box.open(clean=True).abandon()
    assert (box.folder / f"aside-{path.stem}.index.0.{NOW}").read_bytes() == index


def test_a_log_that_ends_below_its_start_is_set_aside(box: Box) -> None:
    fill(box)
    before = {path.name: path.read_bytes() for path in logs(box)}
    log = box.open(clean=True, log_start=100)
    assert (log.log_start, log.end_offset) == (100, 100)
    for name, data in before.items():
        assert (box.folder / f"aside-{name}.0.{NOW}").read_bytes() == data


@pytest.mark.parametrize("full", [False, True])
def test_files_set_aside_are_deleted_after_a_month(box: Box, full: bool) -> None:
    fill(box)
    damage(box)
    box.open().abandon()
    log = box.open()
    assert len(aside(box)) > 4
    retain(log, NOW + KEPT_MS - 1)
    assert len(aside(box)) > 4
    if full:
        log.directory.full = True
        retain(log, NOW)
    else:
        retain(log, NOW + KEPT_MS)
    assert aside(box) == []
    assert log.aside.names == []


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EMFILE])
def test_a_recovery_that_fails_at_any_call_loses_nothing(tmp_path: Path, number: int) -> None:
    origin = Box(tmp_path / "origin")
    fill(origin)
    before = damage(origin)
    files = FaultyFiles()
    counted = Box(tmp_path / "counted", CONFIG, files)
    shutil.copytree(origin.path, counted.path)
    files.arm()
    log = counted.open()
    count = len(files.disarm())
    expected = stored(log)
    log.abandon()
    for at in range(1, count + 1):
        box = Box(tmp_path / str(at), CONFIG, files)
        shutil.copytree(origin.path, box.path)
        files.arm(at, number)
        try:
            box.open().abandon()
        except KafkaError:
            pass
        files.disarm()
        log = Box(box.path, CONFIG).open()
        assert stored(log) == expected
        log.abandon()
        kept = [path.read_bytes() for path in aside(box)]
        for data in list(before.values())[1:]:
            assert data in kept
        shutil.rmtree(box.path)


def test_a_full_disk_does_not_keep_a_torn_batch(box: Box) -> None:
    records = fill(box)
    with logs(box)[-1].open("ab") as file:
        file.write(b"torn")

    class FullDisk(FaultyFiles):
        def open(self, path: str) -> int:
            if "aside-" in path:
                raise OSError(errno.ENOSPC, "no room")
            return super().open(path)

    box.files = FullDisk()
    log = box.open()
    assert stored(log) == records
    assert not aside(box)
    log.abandon()
    before = damage(box)
    with pytest.raises(KafkaError):
        box.open()
    assert logs(box)[-1].read_bytes() == before[logs(box)[-1].name]  # not cut before it is set aside
