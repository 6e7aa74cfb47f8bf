"""A record goes where its producer had the right to write when it was accepted, whatever is set afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.broker.replica.partition import Partition
from ixion.broker.schedules import schedule as schedule_module
from ixion.broker.schedules.note import write_note
from ixion.language.model.errors import ErrorCode
from tests.delay.test_target import SCHEDULE, TargetWorld
from tests.delay.world import RECORD, after, batches_of


class TwoTargets(TargetWorld):
    """`out` and `other` are targets."""

    def start(self) -> Partition:
        partition = super().start()
        self.logs.config_of = lambda topic: self.config if topic == "t" else self.out
        self.lead("other")
        self.replicas.reconfigure("other")
        return partition

    def values_of(self, topic: str) -> list[bytes | None]:
        return [record.value for view in batches_of(self.log_of(topic)) for record in view.records()]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[TwoTargets]:
    made = TwoTargets(tmp_path, RECORD)
    made.start()
    yield made
    made.close()


def test_a_target_that_is_set_later_does_not_redirect_a_record(world: TwoTargets) -> None:
    assert world.send(after(b"mine", 100)).code == ErrorCode.NONE
    world.set(delivery_delay_target="out")
    world.advance(100)
    assert world.values_of("out") == []
    assert b"mine" in world.values()


def test_another_target_or_none_does_not_redirect_it_either(world: TwoTargets) -> None:
    world.set(delivery_delay_target="out")
    assert world.send(after(b"first", 100)).code == ErrorCode.NONE
    world.set(delivery_delay_target="other")
    assert world.send(after(b"second", 100), after(b"third", 200)).code == ErrorCode.NONE
    world.set(delivery_delay_target="")
    assert world.send(after(b"own", 100)).code == ErrorCode.NONE
    for _ in range(5):
        world.advance(100)
    assert world.values_of("out") == [b"first"]
    assert world.values_of("other") == [b"second", b"third"]
    assert world.values().count(b"own") == 1
    assert world.waiting == 0


def test_the_next_leader_knows_it_too(world: TwoTargets) -> None:
    world.set(delivery_delay_target="out")
    world.send(after(b"first", 100))
    world.set(delivery_delay_target="other")
    world.close()
    again = TwoTargets(world.path, world.config)
    again.clock.advance(world.clock.now_ms - again.clock.now_ms)
    again.start()
    again.settle()
    again.advance(100)
    assert (again.values_of("out"), again.values_of("other")) == ([b"first"], [])
    again.close()


def test_a_recurring_record_stays_in_its_topic(world: TwoTargets) -> None:
    world.send(after(b"tick", 100, id=b"a", every=b"1s"))
    world.advance(100)
    world.set(delivery_delay_target="out")
    for _ in range(3):
        world.advance(1_000)
    assert world.values_of("out") == []
    assert world.values().count(b"tick") == 4


def test_records_for_a_target_that_is_gone_hold_up_no_others(world: TwoTargets) -> None:
    world.set(delivery_delay_target="other")
    for _ in range(5):
        world.send(after(b"lost", 100))
    world.set(delivery_delay_target="out")
    world.send(after(b"kept", 100))
    world.set(delivery_delay_target="")
    world.send(after(b"own", 150))
    gone = world.replicas.partitions.pop(("other", 0))
    for _ in range(5):
        world.advance(100)
    assert world.values_of("out") == [b"kept"]
    assert b"own" in world.values()
    assert world.waiting == 5
    world.replicas.partitions["other", 0] = gone
    for _ in range(5):
        world.advance(1_000)
    assert world.values_of("other") == [b"lost"] * 5
    assert world.waiting == 0


def test_a_note_without_a_target_follows_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the notes of 0.1 have none."""

    def without(*args: object, target: str, **named: object) -> bytes:
        return write_note(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(schedule_module, "write_note", without)
    world = TwoTargets(tmp_path, SCHEDULE)
    world.start()
    world.send(after(b"old", 100))
    world.advance(100)
    assert world.values_of("out") == [b"old"]
    world.close()
