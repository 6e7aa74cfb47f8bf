"""The file that says since when the logs of a broker are complete: every doubt must count as a loss."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ixion.broker.log import kept
from ixion.broker.log.clean_shutdown import write_marker
from ixion.broker.log.kept import FILE_NAME, read_kept_since, write_kept_since
from ixion.broker.log.manager import LogManager
from ixion.broker.metadata import paths
from ixion.broker.metadata.broker_node import decode_registration
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.broker.startup.kept_logs import KeptLogs
from ixion.testing import Cluster
from tests.log.support import Clock, QuickFiles, batch


class Machine:
    """A broker's logs over several lives, on a machine that may boot."""

    def __init__(self, folder: Path, count: int) -> None:
        self.paths = [str(folder / str(number)) for number in range(count)]
        self.files = QuickFiles()
        self.boot = "a"
        self.said: int | None = None
        self._epoch = 0

    def live(self, work: Callable[[LogManager, KeptLogs], None] = lambda _logs, _kept: None) -> LogManager:
        """A life; its end is up to the caller."""

        def failed(_path: str) -> None:
            mine.directory_failed()

        logs = LogManager(self.paths, clock_ms=Clock(), files=self.files, on_offline=failed)
        mine = KeptLogs(logs, self.boot)
        mine.load()
        self.said = mine.since
        self._epoch += 100
        mine.registered(self._epoch)
        work(logs, mine)
        return logs

    def killed(self, work: Callable[[LogManager, KeptLogs], None] = lambda _logs, _kept: None) -> None:
        self.live(work).abandon()

    def stopped(self) -> None:
        self.live().close()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Its first life had broker epoch 100 and was killed."""
    made = Machine(tmp_path, 2)
    made.killed()
    assert made.said is None
    return made


def test_a_killed_process_has_lost_nothing(machine: Machine) -> None:
    for _ in range(3):
        machine.killed()
        assert machine.said == 100


def test_a_loss_of_power_begins_anew(machine: Machine) -> None:
    machine.boot = "b"
    machine.killed()
    assert machine.said is None
    machine.killed()
    assert machine.said == 200, "what came before that registration may be lost"


def test_a_clean_stop_counts_over_a_boot(machine: Machine) -> None:
    machine.stopped()
    machine.boot = "b"
    machine.killed()
    assert machine.said == 100
    machine.killed()
    assert machine.said == 100
    machine.boot = "c"
    machine.killed()
    assert machine.said is None


def test_an_unknown_boot_id_leaves_clean_stops_only(machine: Machine) -> None:
    machine.boot = ""
    machine.killed()
    assert machine.said is None
    machine.killed()
    assert machine.said is None
    machine.stopped()
    machine.killed()
    assert machine.said == 400


def test_a_start_that_does_not_get_to_its_registration_changes_nothing(machine: Machine) -> None:
    logs = LogManager(machine.paths, clock_ms=Clock(), files=machine.files)
    KeptLogs(logs, "a").load()
    logs.abandon()
    machine.killed()
    assert machine.said == 100


def test_a_doubtful_start_that_does_not_register_leaves_no_file(machine: Machine) -> None:
    logs = LogManager(machine.paths, clock_ms=Clock(), files=machine.files)
    KeptLogs(logs, "b").load()
    logs.abandon()
    assert read_kept_since(machine.files, machine.paths, "a") is None


@pytest.mark.parametrize("stopped", [False, True], ids=["killed", "stopped"])
def test_a_replaced_added_or_removed_directory_is_doubtful(machine: Machine, tmp_path: Path, stopped: bool) -> None:
    def end() -> None:
        if stopped:
            machine.stopped()

    end()
    shutil.rmtree(machine.paths[1])
    machine.killed()
    assert machine.said is None, "replaced"
    end()
    removed = machine.paths.pop()
    machine.killed()
    assert machine.said is None, "removed"
    end()
    machine.paths.append(removed)
    machine.killed()
    assert machine.said is None, "the one that was away has missed a life"
    end()
    machine.paths.append(str(tmp_path / "new"))
    machine.killed()
    assert machine.said is None, "added"
    machine.killed()
    assert machine.said is not None


def test_a_copy_is_doubtful_even_after_a_clean_stop(machine: Machine, tmp_path: Path) -> None:
    machine.stopped()
    copy = tmp_path / "copy"
    shutil.copytree(machine.paths[0], copy)
    os.rename(machine.paths[0], tmp_path / "old")
    os.rename(copy, machine.paths[0])
    machine.killed()
    assert machine.said is None


def test_a_directory_that_failed_in_the_last_life_is_doubtful(machine: Machine) -> None:
    def fail(logs: LogManager, kept: KeptLogs) -> None:
        logs.directories[0].state.fail("writing", OSError(errno.EIO, "broken"))
        assert kept.since is None, "nor may it say so when it registers again in this life"

    machine.killed(fail)
    machine.killed()
    assert machine.said is None


def test_a_directory_that_cannot_be_read_is_doubtful(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        broken = machine.paths[0]
        list_dir = QuickFiles.list_dir

        def fails(self: QuickFiles, path: str) -> list[os.DirEntry[str]]:
            if path == broken:
                raise OSError(errno.EIO, "broken")
            return list_dir(self, path)

        patched.setattr(QuickFiles, "list_dir", fails)
        machine.killed()
        assert machine.said is None
    machine.killed()
    assert machine.said is None


def test_a_log_that_recovery_cuts_is_doubtful(machine: Machine) -> None:
    def append(logs: LogManager, _: KeptLogs) -> None:
        logs.create("t", 0).append_as_leader(batch(b"1"), 0)
        logs.create("t", 0).append_as_leader(batch(b"2"), 0)

    machine.killed(append)
    (segment,) = [each for path in machine.paths for each in Path(path).glob("t-0/*.log")]
    machine.killed()
    assert machine.said == 100
    segment.write_bytes(segment.read_bytes()[:-1])
    machine.killed()
    assert machine.said is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"version":0}', b'{"version":1}'])
def test_a_damaged_file_is_doubtful(machine: Machine, content: bytes) -> None:
    path = Path(machine.paths[1], FILE_NAME)
    path.write_bytes(content)
    machine.killed()
    assert machine.said is None


def test_the_file_is_written_only_if_it_changes(tmp_path: Path) -> None:
    files = QuickFiles()
    write_kept_since(files, str(tmp_path), "a", 100, 1)
    path = tmp_path / FILE_NAME
    before = path.stat()
    assert json.loads(path.read_bytes())["inode"] == before.st_ino
    write_kept_since(files, str(tmp_path), "a", 100, 1)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    write_kept_since(files, str(tmp_path), "b", 100, 1)
    assert read_kept_since(files, [str(tmp_path)], "b") == 100
    write_marker(files, str(tmp_path))
    assert read_kept_since(files, [str(tmp_path)], "c") == 100


def test_the_boot_id_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert kept.boot_id() == kept.boot_id()
    monkeypatch.setattr(kept, "_BOOT_ID", str(tmp_path / "missing"))
    assert kept.boot_id() == ""


def test_what_a_broker_says_when_it_registers() -> None:
    async def look(real: RealBroker) -> tuple[int, int | None]:
        node = await real.parts.session.get(paths.broker(1))
        return node.stat.created_zxid, decode_registration(1, node.data).kept_since

    with Cluster(1) as cluster:
        member = cluster.brokers[1]
        first, said = member.call(look)
        assert said is None
        cluster.kill(1)
        cluster.restart(1)
        second, said = member.call(look)
        assert second > first
        assert said == first, "killed"
        cluster.expire(1)
        cluster.wait(lambda: member.call(epoch_of) > second, "it is registered again")
        third, said = member.call(look)
        assert third > second
        assert said == first, "only its session expired"
        cluster.restart(1)
        assert member.call(look)[1] == first, "stopped cleanly"
        (file,) = member.call(files_of)
        cluster.kill(1)
        file.unlink()
        cluster.restart(1)
        fifth, said = member.call(look)
        assert said is None
        cluster.expire(1)
        cluster.wait(lambda: member.call(epoch_of) > fifth, "it is registered again")
        assert member.call(look)[1] == fifth, "nothing was lost since then"


async def epoch_of(real: RealBroker) -> int:
    return real.parts.broker_epoch


async def files_of(real: RealBroker) -> list[Path]:
    return [Path(directory.path, FILE_NAME) for directory in real.parts.logs.directories]
