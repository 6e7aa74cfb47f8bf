"""Random lives of one partition: everything that can happen to its logs, in any order, beside a plain model.

A life has records, delayed records, cancels, compaction, retention, changed settings, moves between three directories,
deletions, directories that fail, starts without one of them, and kills. Whatever happens may also happen in the middle
of a move: between two of its steps (`STEPS`), on the test's own thread, or as a kill at any change of a file.

The model is a list of what was delivered, in its order, and what waits. Judged after every step:

- a reader gets the list: without its beginning only as far as retention allows, or as a table if the topic is compacted
- what waits is what the model knows; no record is delivered early, late or twice
- every log of the partition has the newest settings
- the sibling is where its partition is, there are no copies without a move, and no folder is there twice
- a partition with a failed directory is offline, never empty; it is whole when all directories are back
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from unittest import mock

from ixion.broker.log import mover
from ixion.broker.log.cleaner import Cleaner
from ixion.broker.log.config import DAY_MS, HOUR_MS, LogConfig
from ixion.broker.log.files import Part
from ixion.broker.log.manager import LogManager
from ixion.broker.log.names import parse_folder_name
from ixion.broker.log.partition_logs import PartitionLogs
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.delay.world import RECORD, DelayWorld, Sent, after, cancel
from tests.log.support import QuickFiles, batch
from tests.log.test_partition_logs import newest
from tests.replica.world import SELF

DIRECTORIES: Final = 3
KEYS: Final = (b"k0", b"k1", b"k2")
DELAYS_MS: Final = (1, 1_000, HOUR_MS, 30 * HOUR_MS)
# Between these steps of a move other things happen.
STEPS: Final = ((mover, "_append"), (mover.Mover, "_finish"), (PartitionLogs, "name_copies"), (LogManager, "retire"))
SETTINGS: Final[tuple[tuple[str, tuple[object, ...]], ...]] = (
    ("retention_ms", (HOUR_MS, 7 * DAY_MS, -1)),
    ("segment_bytes", (300, 1_000, 1 << 20)),
    ("max_message_bytes", (250, 1 << 20)),
    ("delivery_delay_mode", ("record", "record", "off")),
)


class Killed(BaseException):
    """The process is gone: nothing may catch this, and no file changes any more."""


class Disks(QuickFiles):
    """Disks that fail, and a process that is killed at a change of a file."""

    def __init__(self) -> None:
        self.failing: set[str] = set()
        self.changes_left = -1  # until the kill; -1: no kill
        self.dead = False

    def change(self, path: str) -> None:
        if self.dead:
            raise Killed
        if self.changes_left == 0:
            self.dead = True
            raise Killed
        self.changes_left -= self.changes_left > 0
        self.check(path)

    def check(self, path: str) -> None:
        if any(path.startswith(each) for each in self.failing):
            raise OSError(errno.EIO, "Input/output error", path)

    def open(self, path: str) -> int:
        self.change(path)
        return super().open(path)

    def write(self, fd: int, position: int, parts: list[Part]) -> None:
        self.change(os.readlink(f"/proc/self/fd/{fd}"))
        super().write(fd, position, parts)

    def truncate(self, fd: int, size: int) -> None:
        self.change(os.readlink(f"/proc/self/fd/{fd}"))
        super().truncate(fd, size)

    def rename(self, old: str, new: str) -> None:
        self.change(old)
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self.change(path)
        super().remove(path)

    def remove_tree(self, path: str) -> None:
        self.change(path)
        super().remove_tree(path)

    def list_dir(self, path: str) -> list[os.DirEntry[str]]:
        self.check(path)
        return sorted(super().list_dir(path), key=lambda entry: entry.name)


class Life:
    def __init__(self, seed: int, path: Path) -> None:
        self.chance = random.Random(seed)
        self.path = path
        self.compacted = self.chance.random() < 0.4
        policy = frozenset({"compact" if self.compacted else "delete"})
        self.config: LogConfig = replace(
            RECORD,
            cleanup_policy=policy,
            segment_bytes=300 if self.compacted else 1_000,
            min_cleanable_dirty_ratio=0.01,
            delete_retention_ms=0,
            file_delete_delay_ms=0,
            retention_ms=7 * DAY_MS,
        )
        self.told: list[str] = []
        self.number = 0
        self.topics = 0
        self.moving = False
        self.meddles = 0  # things that may still happen in this move
        self.meddling = False  # one of them is happening
        self.start_anew()
        self.world = self.make_world(Disks())
        self.lead(is_new=True)

    def start_anew(self) -> None:
        """A new topic of the same name."""
        self.topics += 1
        self.shown: list[tuple[bytes, bytes | None, int]] = []  # key, value and time of what was delivered
        self.waiting: dict[int, tuple[int, bytes, bytes]] = {}  # by offset: due time, key, value
        self.kept_from_ms = 0  # retention may have deleted what is older
        self.exists = True

    # The world.

    def make_world(self, disks: Disks) -> DelayWorld:
        self.disks = disks
        world = DelayWorld(self.path, self.config, disks, DIRECTORIES)
        self.cleaner = Cleaner(world.logs, 24 * 1_000)
        return world

    def lead(self, *, is_new: bool = False) -> None:
        """As the controller asks for it (`replica.control`)."""
        world, topic_id = self.world, self.topics.to_bytes(16, "big")
        if not self.exists:
            return
        try:
            if not world.logs.is_made("t", 0, topic_id):
                if not is_new:
                    world.logs.of("t", 0).check_none_offline()
                world.logs.create("t", 0, topic_id)
            world.replicas.lead("t", 0, topic_id, 0, (SELF,), (SELF,), make_log=False)
        except KafkaError:
            assert self.offline, "a partition does not lead although all directories work"
        world.replicas.moves.drop_unused(world.replicas.partitions if self.online else [("t", 0)])
        self.work()

    @property
    def offline(self) -> bool:
        return any(each.state.offline for each in self.world.logs.directories)

    @property
    def online(self) -> bool:
        return ("t", 0) in self.world.replicas.partitions

    def work(self) -> None:
        while self.world.flush():
            pass

    # What happens.

    def step(self) -> None:
        names = ["send", "send", "delay", "delay", "cancel", "time", "set", "move", "move", "tidy", "compact"]
        names += ["delete", "fail", "kill", "restart", "start_without"] if self.chance.random() < 0.3 else []
        self.act(self.chance.choice(names))
        self.judge()

    def act(self, name: str) -> None:
        self.told.append(name)
        if name in ("send", "delay", "cancel", "move") and not self.online:
            return
        getattr(self, name)()

    def sent(self, *records: Sent) -> int:
        """The first offset; -1 if the partition refuses them."""
        result = self.world.send(*records, timestamp=self.world.now_ms())
        self.world.settle()
        return int(result.first_offset) if result.code == ErrorCode.NONE else -1

    def value(self) -> bytes:
        self.number += 1
        return b"%d:" % self.number + b"v" * self.chance.choice((1, 60, 150))

    def send(self) -> None:
        key = self.chance.choice(KEYS)
        value = None if self.compacted and self.chance.random() < 0.4 else self.value()
        now_ms = self.world.now_ms()
        (result,) = self.world.produce(records=batch(value, key=key, timestamp=now_ms))
        self.world.settle()
        if result.code == ErrorCode.NONE:
            self.shown.append((key, value, now_ms))

    def delay(self) -> None:
        value, delay_ms = self.value(), self.chance.choice(DELAYS_MS)
        offset = self.sent(after(value, delay_ms))
        if offset < 0:
            return
        if self.config.delays_records:
            self.waiting[offset] = (self.world.now_ms() + delay_ms, b"k", value)
        else:
            self.shown.append((b"k", value, self.world.now_ms()))

    def cancel(self) -> None:
        if self.waiting and self.config.delays_records:
            offset = self.chance.choice(sorted(self.waiting))
            if self.sent(cancel(b"@%d" % offset)) >= 0:
                del self.waiting[offset]

    def time(self) -> None:
        self.pass_time(self.chance.choice((1, 1_000, HOUR_MS, 2 * HOUR_MS)))

    def pass_time(self, ms: int) -> None:
        self.world.advance(ms)
        self.work()
        schedule = self.world.schedules.get(("t", 0))
        if self.online and schedule is not None and schedule.state is not None:
            self.deliver()

    def deliver(self) -> None:
        now_ms = self.world.now_ms()
        due = sorted((due_ms, offset) for offset, (due_ms, _, _) in self.waiting.items() if due_ms <= now_ms)
        for _, offset in due:
            _, key, value = self.waiting.pop(offset)
            self.shown.append((key, value, now_ms))

    def set(self) -> None:
        name, values = self.chance.choice(SETTINGS)
        self.config = replace(self.config, **{name: self.chance.choice(values)})  # type: ignore[arg-type]
        self.world.config = self.config
        self.world.replicas.reconfigure("t")
        self.work()

    def tidy(self) -> None:
        if self.config.retention_ms >= 0 and not self.compacted:
            self.kept_from_ms = max(self.kept_from_ms, self.world.now_ms() - self.config.retention_ms)
        self.world.logs.look_after()

    def compact(self) -> None:
        """Often enough that tombstones go, which stay for one compaction."""
        for _ in range(3 if self.compacted and self.online else 0):
            self.send()
            log = self.world.logs.get("t", 0)
            if log is not None and not log.directory.offline:
                log.roll()
                self.cleaner.clean_dirtiest(self.world.now_ms())
            self.pass_time(1)

    def delete(self) -> None:
        world = self.world
        if not self.exists:
            return
        try:
            world.logs.of("t", 0).check_none_offline()
            world.replicas.stop("t", 0, delete=True)
        except KafkaError:
            assert self.offline
            return
        world.schedules.topics_deleted(["t"])
        self.exists = False
        if self.chance.random() < 0.7:
            self.recreate()

    def recreate(self) -> None:
        self.start_anew()
        self.lead(is_new=True)

    def fail(self) -> None:
        directory = self.chance.choice(self.world.logs.directories)
        others = [each for each in self.world.logs.directories if each is not directory and not each.state.offline]
        if not others:
            return
        self.disks.failing.add(directory.path)
        directory.state.take_offline("it burns")
        self.world.replicas.directory_failed(directory.path)
        self.work()

    def kill(self) -> None:
        """Now, or at one of the next changes of a file."""
        if self.moving:
            raise Killed
        self.disks.changes_left = self.chance.choice((0, 3, 10, 30, 60))
        try:
            self.chance.choice((self.move, self.tidy, self.compact))() if self.online else self.tidy()
        except Killed:
            pass
        self.reopen()

    def restart(self) -> None:
        if self.moving:
            raise Killed
        self.world.replicas.moves.cancel_all()
        self.work()
        self.world.logs.close()
        self.reopen()

    def start_without(self) -> None:
        """A start with a directory that cannot be read, and a partition that is asked to lead."""
        if self.moving:
            raise Killed
        self.reopen(without=self.chance.randrange(DIRECTORIES))

    def reopen(self, without: int = -1) -> None:
        old = self.world
        self.disks.dead = True
        old.close()
        disks = Disks()
        if without >= 0:
            disks.failing.add(old.paths[without])
        self.world = self.make_world(disks)
        self.world.clock.advance(old.clock.now_ms - self.world.clock.now_ms)
        self.lead()

    # Moves, and what happens in the middle of them.

    def move(self) -> None:
        if self.moving:
            return
        world, to = self.world, self.chance.randrange(DIRECTORIES)
        self.meddles = self.chance.choice((0, 0, 1, 2))
        self.moving = True
        try:
            with self.steps_of_a_move():
                world.begin_move(to)
                self.work()
        except Killed:
            self.moving = False
            self.reopen()
        finally:
            self.moving = False
            self.meddles = 0

    def steps_of_a_move(self) -> ExitStack:
        stack = ExitStack()
        for owner, name in STEPS:
            stack.enter_context(mock.patch.object(owner, name, self.between(getattr(owner, name))))
        return stack

    def between(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any) -> Any:
            if self.meddles and not self.meddling and self.is_free() and self.chance.random() < 0.2:
                self.meddles -= 1
                names = ["send", "delay", "cancel", "time", "set", "set", "tidy", *["compact"] * 6 * self.compacted]
                names += ["delete", "fail", "kill"] if self.chance.random() < 0.3 else []
                self.meddling = True
                try:
                    self.act(self.chance.choice(names))
                finally:
                    self.meddling = False
            return real(*given)

        return step

    def is_free(self) -> bool:
        """Whether another thread could do something now: no lock is held."""
        logs = self.world.logs
        held = [log.lock.locked() for log in [*logs.logs.values(), *logs.future_logs.values()]]
        return not any(held) and not logs.lock._is_owned() and not logs.checkpoints.lock._is_owned()  # type: ignore[attr-defined]

    # The judge.

    def judge(self) -> None:
        if self.exists and not self.online:
            assert self.offline, "the partition is gone"
            return
        if not self.exists:
            assert not self.world.logs.logs, "a deleted topic is there"
            assert not self.world.logs.future_logs, "a copy of a deleted topic is there"
            return
        self.wait_for_loading()
        self.judge_records()
        self.judge_logs()

    def wait_for_loading(self) -> None:
        """Until the delayed records are loaded; a fault is retried after a second."""
        self.pass_time(1)
        for _ in range(10):
            schedule = self.world.schedules.get(("t", 0))
            if schedule is None or schedule.state is not None:
                return
            self.pass_time(1_000)
        raise AssertionError("the delayed records are not loaded")

    def judge_records(self) -> None:
        schedule = self.world.schedules.get(("t", 0))
        waits = 0 if schedule is None or schedule.state is None else schedule.state.count
        assert waits == len(self.waiting), f"{waits} records wait, not {len(self.waiting)}"
        if self.compacted:
            table: dict[bytes, bytes | None] = {}
            table.update((key, value) for key, value, _ in self.shown)
            assert newest(self.world.target) == {key: table[key] for key in table if table[key] is not None}
            return
        found = [value for value in self.world.values() if value]
        expected = [value for _, value, _ in self.shown]
        assert expected[len(expected) - len(found) :] == found, "a reader gets other records"
        gone = self.shown[: len(expected) - len(found)]
        assert all(ms < self.kept_from_ms for _, _, ms in gone), "records are gone that retention keeps"

    def judge_logs(self) -> None:
        manager = self.world.logs
        logs = manager.of("t", 0)
        assert not manager.future_logs, "a copy is there without a move"
        assert len({log.directory.path for log in logs.in_use}) == 1, "the sibling is not where its partition is"
        assert logs.in_use[0].config is self.config, "the log has old settings"
        for log in logs.in_use:
            assert log.config.segment_bytes == self.config.segment_bytes, "a log has old settings"
            assert not log.moving, "the cleaner stays away from a log that does not move"
        paths = [Path(path) for path in self.world.paths if path not in self.disks.failing]
        names = [entry.name for path in paths for entry in path.iterdir()]
        used = [name for name in names if (parsed := parse_folder_name(name)) is not None and not parsed.mark]
        assert len(used) == len(set(used)), f"a folder is there twice: {sorted(used)}"


def live(seed: int, path: Path, steps: int) -> None:
    life = Life(seed, path)
    try:
        for _ in range(steps):
            life.step()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}; after {' '.join(life.told)}") from error
    finally:
        life.disks.dead = False
        life.world.close()
