"""A life of two log directories with every operation there is, and what must be true of it whatever happens.

`Life` does one operation after the other and notes what was acknowledged. An operation may fail, but only with a
KafkaError, and the manager's own upkeep not even with that. `check` looks at a later life: what was acknowledged is
there, and nothing else but what was under way when the process was killed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ixion.broker.log.cleaner import Cleaner
from ixion.broker.log.config import LogConfig
from ixion.broker.log.disk_guard import DiskGuard
from ixion.broker.log.files import Files
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from ixion.broker.log.mover import Mover
from ixion.broker.log.prepare import Origin
from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound
from ixion.language.model.errors import KafkaError
from tests.log.support import Clock, batch, marker, stored

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100, file_delete_delay_ms=0)
CONFIGS = {
    "plain": SMALL,
    "keyed": LogConfig(
        segment_bytes=400,
        index_interval_bytes=100,
        file_delete_delay_ms=0,
        cleanup_policy=frozenset({"compact"}),
        min_cleanable_dirty_ratio=0.0,
    ),
    "short": LogConfig(segment_bytes=400, index_interval_bytes=100, file_delete_delay_ms=0, retention_bytes=800),
    "moved": SMALL,
    "txn": SMALL,
    "brief": SMALL,
    "older": SMALL,
    "follower": SMALL,
    "ended": SMALL,
}
KEPT = 4  # records of `short` that retention never takes: the active segment and one before
PRODUCERS = {"plain": 1, "short": 2, "moved": 3, "older": 4}


@dataclass(slots=True)
class Truth:
    """What clients know."""

    acked: dict[str, list[bytes]] = field(default_factory=dict)
    under_way: tuple[str, bytes] | None = None  # an append that was neither acknowledged nor refused
    deleting: bool = False  # the deletion of `brief` has begun
    aborted: set[str] = field(default_factory=set)  # topics with an abort that was acknowledged
    cutting: int = -1  # records that `follower` keeps when the truncation under way is finished


@dataclass(slots=True)
class Life:
    root: Path
    files: Files
    truth: Truth
    clock: Clock = field(default_factory=Clock)
    failures: list[str] = field(default_factory=list)
    closed: bool = False
    manager: LogManager = field(init=False)

    def tell(self, work: Callable[[], object]) -> bool:
        """An operation whose caller gets the error."""
        try:
            work()
        except KafkaError as error:
            self.failures.append(str(error))
            return False
        return True

    def start(self) -> None:
        paths = [str(self.root / "a"), str(self.root / "b")]
        self.manager = LogManager(
            paths, clock_ms=self.clock, config_of=CONFIGS.__getitem__, files=self.files, recovery_threads=1
        )
        self.manager.load()

    def create(self, topic: str, directory: int = 0) -> None:
        gone = any(directory.state.offline for directory in self.manager.directories)
        if self.manager.get(topic, 0) is None and not (gone and self.truth.acked.get(topic)):  # else it has no leader
            where = self.manager.directories[directory]
            self.tell(lambda: self.manager.create(topic, 0, topic.encode().ljust(16, b"-"), where))

    def append(self, topic: str, value: bytes) -> None:
        log = self.manager.get(topic, 0)
        if log is None:
            return
        known = self.truth.acked.setdefault(topic, [])
        producer = PRODUCERS.get(topic)
        trace = None if producer is None else (producer, 0, len(known))
        self.truth.under_way = (topic, value)
        data = batch(value * 10, key=value.split(b"-")[0], producer=trace)
        if self.tell(lambda: log.append_as_leader(data, 1)):
            known.append(value * 10)
            log.raise_high_watermark(log.end_offset)
        self.truth.under_way = None

    def fill(self, topic: str, count: int, directory: int = 0) -> None:
        self.create(topic, directory)
        for number in range(count):
            self.append(topic, b"%d-%d" % (number % 3, len(self.truth.acked.get(topic, []))))

    def transact(self, topic: str = "txn") -> None:
        """Two transactions: one aborted, one committed."""
        self.create(topic)
        log = self.manager.get(topic, 0)
        if log is None:
            return
        for producer, commit in ((8, False), (9, True)):
            value = b"txn-%d" % producer
            self.truth.under_way = (topic, value)
            if not self.tell(
                lambda p=producer, v=value: log.append_as_leader(  # type: ignore[misc]
                    batch(v, producer=(p, 0, 0), transactional=True), 1
                )
            ):
                self.truth.under_way = None
                continue
            self.truth.acked.setdefault(topic, []).append(value)
            self.truth.under_way = (topic, b"")
            ended = self.tell(
                lambda p=producer, c=commit: log.append_as_leader(  # type: ignore[misc]
                    marker(p, 0, commit=c), 1, Origin.COORDINATOR
                )
            )
            self.truth.under_way = None
            if ended and not commit:
                self.truth.aborted.add(topic)
            log.raise_high_watermark(log.end_offset)

    def truncate(self, keep: int = 4) -> None:
        """As a follower whose leader has another end."""
        log = self.manager.get("follower", 0)
        if log is not None and len(self.truth.acked.get("follower", [])) > keep:
            self.truth.cutting = keep
            if self.tell(lambda: log.truncate_to(keep)):
                del self.truth.acked["follower"][keep:]
                self.truth.cutting = -1

    def flush(self) -> None:
        for log in list(self.manager.logs.values()):
            self.tell(log.flush)

    def roll(self) -> None:
        for log in list(self.manager.logs.values()):
            self.tell(log.roll)

    def compact(self) -> None:
        cleaner = Cleaner(self.manager, 1 << 16)
        for _ in range(3):
            cleaner.clean_dirtiest(self.clock.now_ms)

    def look_after(self) -> None:
        self.clock.now_ms += 1000
        self.manager.look_after()
        self.manager.flush_due()

    def checkpoint(self) -> None:
        self.manager.checkpoints.write_all()

    def move(self) -> None:
        if self.manager.get("moved", 0) is not None:
            for directory in reversed(self.manager.directories):
                self.tell(Mover(self.manager, "moved", 0, directory).run)

    def delete(self) -> None:
        self.truth.deleting = True
        self.tell(lambda: self.manager.delete("brief", 0))
        self.manager.doomed_folders.delete_due(self.clock.now_ms + 1)

    def close(self) -> None:
        self.closed = True
        self.manager.close()

    def live(self, after_each: Callable[[Life], None] = lambda _: None) -> None:
        """Every operation there is."""
        for operation in (
            self.start,
            lambda: self.fill("plain", 9),
            lambda: self.fill("keyed", 9),
            lambda: self.fill("short", 12, 1),
            lambda: self.fill("moved", 7),
            lambda: self.fill("older", 2),
            lambda: self.fill("brief", 3),
            lambda: self.fill("follower", 7),
            self.transact,
            self.flush,
            self.checkpoint,
            self.truncate,
            lambda: self.fill("follower", 5),
            lambda: self.fill("plain", 3),
            self.look_after,
            self.move,
            lambda: self.fill("moved", 2),
            self.roll,
            self.compact,
            self.delete,
            self.look_after,
            lambda: self.fill("plain", 2),
            lambda: self.fill("keyed", 2),
            self.close,
        ):
            operation()
            after_each(self)


def older_life(root: Path, files: Files) -> Truth:
    """What the life under test starts with: a directory that was killed, with an index that is damaged."""
    truth = Truth()
    life = Life(root, files, truth)
    life.start()
    life.fill("plain", 5)
    life.fill("older", 6)
    life.transact("ended")
    life.roll()
    life.flush()
    life.checkpoint()
    life.fill("older", 2)
    life.manager.abandon()
    # The start under test must recover a sealed segment with an aborted transaction, below the recovery point.
    with (root / "a" / "ended-0" / "00000000000000000000.txnindex").open("ab") as file:
        file.write(b"x")
    return truth


def check_now(life: Life, passes: bool) -> None:
    """The broker that has just met the fault: it shows what was acknowledged and nothing else; after a fault that
    passes every topic takes records again, by itself."""
    manager = life.manager
    for directory in manager.directories:
        DiskGuard(1, lambda _: (1 << 30, 1 << 40)).check(directory.state)
    manager.load_missing()
    manager.mend()
    for (topic, _), log in list(manager.logs.items()):
        if not log.closed and not log.directory.offline:
            check_records(life.truth, topic, log)
    offline = [directory.state.reason for directory in manager.directories if directory.state.offline]
    if not passes or life.closed:
        return
    if offline:  # a directory that could not even be listed at the start stays offline, and says so
        assert all(reason.startswith("reading ") for reason in offline)
        return
    for topic, acked in list(life.truth.acked.items()):
        if topic in ("brief", "txn", "ended"):
            continue
        before, failures = len(acked), len(life.failures)
        life.fill(topic, 1)
        assert len(acked) == before + 1, (topic, life.failures[failures:], manager.unreadable)
    life.flush()
    life.checkpoint()


def check_later(root: Path, truth: Truth) -> None:
    """A later life, on a disk that works."""
    life = Life(root, Files(), truth)
    life.start()
    manager = life.manager
    assert manager.unreadable == {}
    for topic, acked in truth.acked.items():
        log = manager.get(topic, 0)
        if log is None:
            assert not acked or (topic == "brief" and truth.deleting), f"{topic} is lost"
            continue
        if topic == "brief" and truth.deleting and not stored(log):
            continue
        check_records(truth, topic, log)
    for topic in CONFIGS:
        life.fill(topic, 1)
        assert not life.failures, life.failures
    manager.close()


def check_records(truth: Truth, topic: str, log: Log) -> None:
    found = [value for _, value in stored(log)]
    acked = truth.acked.get(topic, [])
    expected = [list(acked)]
    if truth.under_way is not None and truth.under_way[0] == topic and truth.under_way[1]:
        value = truth.under_way[1]
        expected.append([*acked, value if topic in ("txn", "ended") else value * 10])
    if topic == "keyed":
        wishes = [{value.split(b"-")[0]: value for value in wish} for wish in expected]
        assert {value.split(b"-")[0]: value for value in found} in wishes, (topic, found, expected)
        assert set(found) <= set(expected[-1])
    elif topic == "short":
        assert any(found == wish[len(wish) - len(found) :] for wish in expected), (topic, found, expected)
        assert len(found) >= min(KEPT, len(acked)), (topic, found, expected)
    elif topic == "follower" and truth.cutting >= 0:
        # Segments go from the last one on. From now on the log has what was found.
        assert found == acked[: len(found)], (found, acked)
        assert len(found) >= truth.cutting
        del acked[len(found) :]
        truth.cutting = -1
    else:
        assert found in expected, (topic, found, expected)
    if topic in truth.aborted and acked:
        log.raise_high_watermark(log.end_offset)
        data = read(log, log.log_start, 10_000, Bound.VISIBLE_STABLE)
        assert [each.producer_id for each in data.aborted or []] == [8], "the abort was acknowledged"
    assert [offset for offset, _ in stored(log)] == sorted({offset for offset, _ in stored(log)})
