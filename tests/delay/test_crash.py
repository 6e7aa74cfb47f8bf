"""A9: killed, or out of room, at every call to the disk while records are accepted, delivered, cancelled and committed.

Whatever happens, the next life delivers what was acknowledged, each record once and none early.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ixion.broker.log.config import LogConfig
from ixion.language.model.errors import ErrorCode
from tests.delay.world import DelayWorld, after, batches_of, cancel
from tests.faults.disk import TABLE, Fault, FaultyDisk, Killed
from tests.log.support import marker

SMALL = LogConfig(delivery_delay_mode="record", segment_bytes=2_000, index_interval_bytes=100)

ALL = os.environ.get("IXION_FAULTS") == "all"


class Life:
    """Does one thing after the other; `due` has when each acknowledged record is due, by value."""

    def __init__(self, world: DelayWorld) -> None:
        self.world = world
        self.due: dict[bytes, int] = {}
        self.perhaps: set[bytes] = set()  # under way when the process ended
        self.gone: set[bytes] = set()  # cancelled, replaced or aborted
        self.early: list[bytes] = []
        self.one_of: set[bytes] = set()  # exactly one of these is delivered

    def send(self, value: bytes, delay_ms: int, **options: object) -> bool:
        self.perhaps.add(value)
        schedule_id = options.pop("id", None)
        more = {"id": schedule_id} if isinstance(schedule_id, bytes) else {}
        result = self.world.send(after(value, delay_ms, **more), (b"now-" + value, []), **options)
        if result.code == ErrorCode.NONE:
            self.due[value] = self.world.now_ms() + delay_ms
            self.perhaps.discard(value)
            return True
        return False

    def cancel(self, what: bytes, value: bytes) -> None:
        self.perhaps.add(value)
        due = self.due.pop(value, None)
        if self.world.send(cancel(what)).code == ErrorCode.NONE:
            self.gone.add(value)
            self.perhaps.discard(value)
        elif due is not None and not self.world.failed:  # after a failed disk it may count or not
            self.due[value] = due
            self.perhaps.discard(value)

    def look(self) -> None:
        now_ms = self.world.now_ms()
        try:
            values = self.world.values()
        except AssertionError:
            assert self.world.failed, "only a disk that has failed cannot be read"
            return
        self.early += [value for value in values if value is not None and self.due.get(value, 0) > now_ms]

    def run(self) -> None:
        world = self.world
        for number in range(4):
            self.send(b"plain-%d" % number, 50 + number)
        self.send(b"idempotent", 60, producer=(5, 0, 0))
        self.send(b"old", 70, id=b"i")
        old = self.due.pop(b"old", None)
        self.perhaps.add(b"old")
        if self.send(b"new", 80, id=b"i"):
            self.gone.add(b"old")
            self.perhaps.discard(b"old")
        elif old is not None:
            self.one_of = {b"old", b"new"}  # after such an error it may count or not
        self.send(b"unwanted", 90, id=b"u")
        self.cancel(b"u", b"unwanted")
        for value, commits in ((b"commits", True), (b"aborts", False)):
            producer = 7 if commits else 8
            if self.send(value, 20, producer=(producer, 0, 0), transactional=True):
                due = self.due.pop(value)
                self.perhaps.add(value)
                results = world.produce_marker(marker(producer, 0, commit=commits))
                if results == ErrorCode.NONE:
                    self.perhaps.discard(value)
                    if commits:
                        self.due[value] = due
                    else:
                        self.gone.add(value)
        for _ in range(10):
            world.advance(7)
            self.look()

    def check(self, world: DelayWorld) -> None:
        """Of the next life."""
        for producer in (7, 8):
            entry = world.target.producers.producers.get(producer)
            if entry is not None and entry.txn_first_offset >= 0:
                world.mark(producer, 0, commit=producer == 7)
        world.advance(1_000)
        for _ in range(5):
            world.advance(2_000)
        values = [value for value in world.values() if value is not None and not value.startswith(b"now-")]
        assert sorted(values) == sorted(set(values)), "each once"
        assert set(self.due) <= set(values), "nothing that was acknowledged is lost"
        assert set(values) <= set(self.due) | self.perhaps
        assert not self.one_of or len(self.one_of & set(values)) == 1
        assert not self.early
        assert world.waiting == 0


def live(path: Path, disk: FaultyDisk) -> Life:
    world = DelayWorld(path, SMALL, disk)
    world.start()
    life = Life(world)
    try:
        life.run()
    except Killed:
        pass
    world.close()
    return life


def faults_at(calls: list[tuple[str, str]], wanted: Callable[[Fault], bool]) -> list[tuple[int, Fault]]:
    """Of the calls after the start, each with the faults that it can meet."""
    return [(at, fault) for at, (what, _) in enumerate(calls) for fault in TABLE[what] if wanted(fault)]


@pytest.mark.parametrize("fault", [Fault.KILL_BEFORE, Fault.KILL_AFTER, Fault.ENOSPC, Fault.EMFILE, Fault.EIO])
def test_a9_whatever_happens_at_any_call_each_record_is_delivered_once_and_none_early(
    tmp_path: Path, fault: Fault
) -> None:
    healthy = FaultyDisk()
    world = DelayWorld(tmp_path / "healthy", SMALL, healthy)
    world.start()
    begun = len(healthy.calls)
    life = Life(world)
    life.run()
    life.check(world)
    world.close()
    places = [at for at, each in faults_at(healthy.calls, lambda each: each == fault) if at >= begun]
    assert len(places) > (20 if fault != Fault.EMFILE else 5)
    for at in places[:: 1 if fault.kills or ALL else 3]:
        disk = FaultyDisk(at, fault)
        life = live(tmp_path / str(at), disk)
        if not disk.struck:
            continue
        later = DelayWorld(tmp_path / str(at), SMALL)
        later.clock.advance(life.world.clock.now_ms - later.clock.now_ms)
        later.start()
        life.check(later)
        later.close()


def test_a9_the_power_fails_and_the_sibling_has_lost_more_than_the_partition(tmp_path: Path) -> None:
    world = DelayWorld(tmp_path)
    world.start()
    world.send(after(b"delivered", 10), after(b"waits", 10_000), after(b"replaced", 10_000, id=b"i"))
    world.send(after(b"commits", 10), producer=(7, 0, 0), transactional=True)
    world.send(after(b"aborts", 10), producer=(8, 0, 0), transactional=True)
    kept = world.sibling.end_offset
    world.advance(10)
    world.mark(7, 0, commit=True)
    world.mark(8, 0, commit=False)
    world.advance(10)
    assert world.values() == [b"delivered", b"commits"]
    world.sibling.truncate_to(kept)
    world = world.restart()
    kinds = [view for view in batches_of(world.sibling) if view.base_offset >= kept]
    assert len(kinds) == 4, "two deliveries and two outcomes are noted again"
    world.advance(20_000)
    assert world.values() == [b"delivered", b"commits", b"waits", b"replaced"]
    world = world.restart()
    assert world.waiting == 0
    world.close()


def test_a9_the_power_fails_and_the_partition_has_lost_more_than_the_sibling(tmp_path: Path) -> None:
    world = DelayWorld(tmp_path)
    world.start()
    world.send(after(b"x", 10), after(b"y", 20))
    accepted = world.target.end_offset
    world.advance(50)
    world.send(after(b"never acknowledged", 10))
    world.target.truncate_to(accepted)
    world = world.restart()
    world.advance(1)
    assert world.read() == [(2, b"x"), (3, b"y")]
    assert world.waiting == 0
    world.close()
