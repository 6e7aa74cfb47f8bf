"""Schedule topics: records stay in them and are delivered, once, to the same partition of another topic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ixion.delay.journal import Journal
from ixion.log.config import LogConfig
from ixion.model.errors import ErrorCode, KafkaError
from ixion.records.record import Record
from ixion.replica.partition import Partition
from tests.delay.world import RECORD, DelayWorld, Sent, after, batches_of, cancel

SCHEDULE = replace(RECORD, delivery_delay_target="out")


class TargetWorld(DelayWorld):
    """Topic `t` is a schedule topic, and `out` its target."""

    def start(self) -> Partition:
        self.logs.config_of = lambda topic: LogConfig() if topic == "out" else self.config
        self.lead("out")
        self.replicas.reconfigure("out")
        return super().start()

    def again(self) -> TargetWorld:
        self.close()
        made = TargetWorld(self.path, self.config)
        made.clock.advance(self.clock.now_ms - made.clock.now_ms)
        made.start()
        return made

    def delivered(self) -> list[Record]:
        return [record for view in batches_of(self.log_of("out")) for record in view.records()]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[TargetWorld]:
    made = TargetWorld(tmp_path, SCHEDULE)
    made.start()
    yield made
    made.close()


def test_records_stay_in_their_topic_and_are_delivered_to_its_target(world: TargetWorld) -> None:
    result = world.send(after(b"one", 100), after(b"two", 50))
    assert result.code == ErrorCode.NONE
    assert world.values() == [b"one", b"two"], "they have offsets of their own, without holes"
    world.advance(60)
    assert [record.value for record in world.delivered()] == [b"two"]
    world.advance(60)
    assert [(record.offset, record.value) for record in world.delivered()] == [(0, b"two"), (1, b"one")]
    headers = dict(world.delivered()[1].headers)
    assert headers["x-schedule-topic"] == b"t"
    assert headers["x-schedule-offset"] == b"0"
    assert "x-deliver-after-ms" not in headers
    assert world.waiting == 0
    again = world.again()
    assert again.waiting == 0
    again.close()


def test_they_are_cancelled_as_any_other(world: TargetWorld) -> None:
    world.send(after(b"one", 100, id=b"a"), after(b"two", 100))
    world.send(cancel(b"a"))
    world.advance(100)
    assert [record.value for record in world.delivered()] == [b"two"]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ((b"when?", []), "needs x-deliver-after-ms or x-deliver-at"),
        (after(b"always", 100, id=b"a", every=b"5s"), "no recurring records"),
    ],
)
def test_a_record_that_would_be_seen_by_nobody_is_refused(world: TargetWorld, sent: Sent, reason: str) -> None:
    result = world.send(after(b"fine", 100), sent)
    assert result.code == ErrorCode.INVALID_RECORD
    assert reason in (result.message or "")
    assert world.waiting == 0
    assert world.values() == []


def test_a_target_that_is_not_there_refuses_them(world: TargetWorld) -> None:
    world.set(delivery_delay_target="nowhere")
    result = world.send(after(b"one", 100))
    assert result.code == ErrorCode.INVALID_RECORD
    assert "there is no such partition" in (result.message or "")


def test_a_broker_that_is_killed_before_it_notes_a_delivery_does_not_deliver_again(
    world: TargetWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.send(after(b"one", 100), after(b"two", 5_000))

    def killed(_journal: Journal, _notes: bytes) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "killed here")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write", killed)
        world.advance(100)
    assert [record.value for record in world.delivered()] == [b"one"]
    again = world.again()
    assert again.waiting == 1
    again.advance(5_000)
    assert [record.value for record in again.delivered()] == [b"one", b"two"]
    last = again.again()
    assert last.waiting == 0
    assert len(last.delivered()) == 2
    last.close()
