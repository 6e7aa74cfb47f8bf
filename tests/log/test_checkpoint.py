"""Checkpoints, meta.properties, partition.metadata, the lock, the clean-shutdown marker: exact bytes, and damage."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from ixion.broker.log.checkpoint import RECOVERY_POINTS, read_epochs, read_offsets, write_epochs, write_offsets
from ixion.broker.log.clean_shutdown import has_marker, take_marker, write_marker
from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.directory import LogDirectory
from ixion.broker.log.files import Files
from ixion.broker.log.lock import DirectoryLock, DirectoryLockedError
from ixion.broker.log.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from ixion.broker.log.partition_metadata import read_topic_id, write_topic_id
from ixion.language.model.errors import KafkaError
from ixion.language.model.ids import id_text
from tests.log.support import QuickFiles

FILES = Files()


def test_offsets_are_written_as_kafka_does(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    write_offsets(FILES, str(path), {("orders", 1): 88, ("orders", 0): 1523})
    assert path.read_text() == "0\n2\norders 0 1523\norders 1 88\n"
    assert read_offsets(FILES, str(path)) == {("orders", 0): 1523, ("orders", 1): 88}
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_epochs_are_written_as_kafka_does(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    write_epochs(FILES, str(path), [(2, 0), (5, 40)])
    assert path.read_text() == "0\n2\n2 0\n5 40\n"
    assert read_epochs(FILES, str(path)) == [(2, 0), (5, 40)]


def test_a_missing_checkpoint_is_empty(tmp_path: Path) -> None:
    assert read_offsets(FILES, str(tmp_path / "none")) == {}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1\n0\n",
        b"0",
        b"0\n",
        b"0\nx\n",
        b"0\n2\na 0 1\n",
        b"0\n1\na 0 1\nb 0 1\n",
        b"0\n1\na 0\n",
        b"0\n1\na x 1\n",
        b"0\n1\na 0 -5\n",
        b"0\n1\na 0 99999999999999999999\n",
        b"0\n1\na 0 1_0\n",
        b"\xff\xfe\n0\n",
    ],
)
def test_a_damaged_checkpoint_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "replication-offset-checkpoint"
    path.write_bytes(content)
    with pytest.raises(CorruptFileError, match=path.name):
        read_offsets(FILES, str(path))


@pytest.mark.parametrize("content", ["0\n2\n5 40\n5 50\n", "0\n2\n5 40\n6 30\n", "0\n1\n5 40 1\n"])
def test_epochs_must_rise(tmp_path: Path, content: str) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(content)
    with pytest.raises(CorruptFileError):
        read_epochs(FILES, str(path))


@pytest.mark.parametrize(
    "meta",
    [
        MetaProperties(version=0, cluster_id="Abc-_9", node_id=3),
        MetaProperties(version=1, cluster_id="x=y", node_id=0, directory_id="d"),
        MetaProperties(version=0, node_id=1),
    ],
)
def test_meta_properties_round_trip(tmp_path: Path, meta: MetaProperties) -> None:
    path = str(tmp_path / "meta.properties")
    write_meta_properties(FILES, path, meta)
    assert read_meta_properties(path) == meta


def test_meta_properties_as_java_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    path.write_text("#\n#Sun Nov 15 20:55:00 UTC 2026\nnode.id=1\nversion=1\ncluster.id=aB\\=c\n")
    assert read_meta_properties(str(path)) == MetaProperties(version=1, cluster_id="aB=c", node_id=1)


@pytest.mark.parametrize("content", ["", "version=7\n", "version=0\nbroker.id=x\n", "version=\n"])
def test_damaged_meta_properties_are_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "meta.properties"
    path.write_text(content)
    with pytest.raises(CorruptFileError, match=r"meta\.properties"):
        read_meta_properties(str(path))


def test_partition_metadata_is_kafkas(tmp_path: Path) -> None:
    topic_id = UUID("00000000-0000-4000-8000-00000000abcd").bytes
    path = tmp_path / "partition.metadata"
    write_topic_id(FILES, str(path), topic_id)
    assert path.read_text() == f"version: 0\ntopic_id: {id_text(topic_id)}"
    assert read_topic_id(FILES, str(path)) == topic_id
    assert len(id_text(topic_id)) == 22


@pytest.mark.parametrize(
    "content",
    [
        "",
        "version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
        "version: 0\ntopic_id: ???",
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
    ],
)
def test_damaged_partition_metadata_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "partition.metadata"
    path.write_text(content)
    with pytest.raises(CorruptFileError, match=r"partition\.metadata"):
        read_topic_id(FILES, str(path))


def test_a_directory_has_one_owner_in_this_process(tmp_path: Path) -> None:
    lock = DirectoryLock(str(tmp_path))
    with pytest.raises(DirectoryLockedError, match="this process"):
        DirectoryLock(str(tmp_path / "."))
    lock.release()
    DirectoryLock(str(tmp_path)).release()


def test_a_directory_has_one_owner_among_processes(tmp_path: Path) -> None:
    lock = DirectoryLock(str(tmp_path))
    code = "import sys; from ixion.broker.log.lock import DirectoryLock; DirectoryLock(sys.argv[1])"
    outcome = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    lock.release()
    assert "DirectoryLockedError" in outcome.stderr
    assert "in use by another process" in outcome.stderr


def test_the_marker_is_taken_once(tmp_path: Path) -> None:
    assert not has_marker(str(tmp_path))
    write_marker(FILES, str(tmp_path), 12)
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":12}'
    assert has_marker(str(tmp_path))
    take_marker(FILES, str(tmp_path))
    assert not has_marker(str(tmp_path))
    take_marker(FILES, str(tmp_path))


class ForgetfulDisk(QuickFiles):
    """Once told to, it renames files and then fails to sync the folder: the new file may be there, or the old one."""

    fails = False

    def sync_dir(self, path: str) -> None:
        if self.fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def test_a_checkpoint_whose_write_failed_is_not_used(tmp_path: Path) -> None:
    """The file may hold an offset that the broker does not know of. A truncation and a new topic must not meet it."""
    files = ForgetfulDisk()
    directory = LogDirectory(str(tmp_path), files)
    directory.begin()
    path = str(tmp_path / RECOVERY_POINTS)
    for truncates in (True, False):
        directory.write_checkpoint(RECOVERY_POINTS, {("orders", 0): 1, ("orders", 1): 9}, set())
        files.fails = True
        with pytest.raises(KafkaError):
            directory.write_checkpoint(RECOVERY_POINTS, {("orders", 0): 100, ("orders", 1): 9}, set())
        assert read_offsets(files, path)["orders", 0] == 100
        assert directory.remembers(("orders", 0))
        files.fails = False
        if truncates:
            directory.lower_checkpoints(("orders", 0), 5)
        else:
            directory.forget(("orders", 0))
        assert read_offsets(files, path).get(("orders", 0), 0) <= 5
        assert read_offsets(files, path)["orders", 1] == 9
    directory.release()
