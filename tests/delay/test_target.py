"""Schedule topics: records stay in them and are delivered, once, to the same partition of another topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ixion.broker.log.config import DAY_MS, LogConfig
from ixion.broker.replica.partition import Partition
from ixion.broker.schedules.journal import Journal
from ixion.broker.schedules.snapshot import capture, read, write
from ixion.broker.schedules.targets import Targets
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.record import Record
from tests.delay.world import RECORD, DelayWorld, Sent, after, batches_of, cancel
from tests.log.support import NOW

SCHEDULE = replace(RECORD, delivery_delay_target="out")


class TargetWorld(DelayWorld):
    """Topic `t` is a schedule topic, and `out` its target."""

    out = LogConfig()
    lose_answers = 0  # sends that are carried out and not answered
    refuse = 0  # sends of more than one record that are refused

    def start(self) -> Partition:
        self.logs.config_of = lambda topic: self.out if topic == "out" else self.config
        self.targets = FaultyTargets(self)
        self.lead("out")
        self.replicas.reconfigure("out")
        return super().start()

    def settle(self) -> None:
        super().settle()
        for _ in range(20):  # a send takes some turns
            super().settle()

    def again(self, *, forgotten: bool = False) -> TargetWorld:
        """Killed and started again. `forgotten`: the target has forgotten every producer meanwhile."""
        self.close()
        made = TargetWorld(self.path, self.config)
        made.clock.advance(self.clock.now_ms - made.clock.now_ms)
        if forgotten:
            made.lead("out").log.expire_producers(made.now_ms() + 10 * DAY_MS)
        made.start()
        made.settle()
        return made

    def delivered(self) -> list[Record]:
        return [record for view in batches_of(self.log_of("out")) for record in view.records()]


class FaultyTargets(Targets):
    def __init__(self, world: TargetWorld) -> None:
        super().__init__(world.replicas, find=world._find, ask=world._ask, producer_id=world._producer_id)
        self._world = world

    async def send(self, topic: str, number: int, records: bytes, count: int) -> int:
        if count > 1 and self._world.refuse:
            self._world.refuse -= 1
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "refused")
        end = await super().send(topic, number, records, count)
        if self._world.lose_answers:
            self._world.lose_answers -= 1
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no answer")
        return end


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
def test_a_record_that_no_consumer_would_see_is_refused(world: TargetWorld, sent: Sent, reason: str) -> None:
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


@pytest.mark.parametrize("written", [0, 1])
@pytest.mark.parametrize("forgotten", [False, True])
def test_a_broker_that_is_killed_at_a_note_does_not_deliver_again(
    world: TargetWorld, monkeypatch: pytest.MonkeyPatch, written: int, forgotten: bool
) -> None:
    """At the first note, which says what is sent, or at the second, which says that it was delivered."""
    world.send(after(b"one", 100), after(b"two", 5_000))
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write", failing(Journal.write, written))
        world.advance(100)
    assert [record.value for record in world.delivered()] == [b"one"] * written
    again = world.again(forgotten=forgotten)
    assert [record.value for record in again.delivered()] == [b"one"], "at once"
    again.advance(5_000)
    assert [record.value for record in again.delivered()] == [b"one", b"two"]
    last = again.again()
    assert (last.waiting, len(last.delivered())) == (0, 2)
    last.close()


def failing(write: Callable[[Journal, bytes], None], allowed: int) -> Callable[[Journal, bytes], None]:
    """The process is killed at a note, after so many were written."""
    left = [allowed]

    def killed(journal: Journal, notes: bytes) -> None:
        if left[0] == 0:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "killed here")
        left[0] -= 1
        write(journal, notes)

    return killed


def test_a_send_with_an_unknown_outcome_is_repeated_and_recognised(world: TargetWorld) -> None:
    world.lose_answers = 3
    world.send(after(b"one", 100), after(b"two", 150))
    world.advance(100)
    assert world.waiting == 2, "it is in the target, but nobody has said so"
    for _ in range(20):
        world.advance(500)
    assert world.waiting == 0
    assert [record.value for record in world.delivered()] == [b"one", b"two"]


def test_records_that_the_target_refuses_together_are_sent_one_by_one(world: TargetWorld) -> None:
    world.send(after(b"one", 100), after(b"two", 100), after(b"three", 100))
    world.refuse = 1
    world.advance(100)
    assert world.delivered() == []
    world.send(cancel(b"@1"))
    for _ in range(20):
        world.advance(500)
    assert [record.value for record in world.delivered()] == [b"one", b"three"], "what waits again can be cancelled"
    again = world.again()
    assert (again.waiting, len(again.delivered())) == (0, 2)
    again.close()


def test_a_cancel_after_a_refusal_holds_after_a_restart(world: TargetWorld) -> None:
    world.send(after(b"one", 100), after(b"two", 100))
    world.refuse = 1_000
    world.advance(100)
    world.send(cancel(b"@0"))
    again = world.again()
    again.advance(5_000)
    assert [record.value for record in again.delivered()] == [b"two"]
    again.close()


def test_a_delivery_that_only_this_replica_has_is_not_noted_yet(world: TargetWorld) -> None:
    """After a fail-over it would be on no replica, and no longer wait."""
    target = world.lead("out", epoch=1, replicas=(1, 2), isr=(1, 2))
    world.send(after(b"one", 100))
    for _ in range(3):
        world.advance(11_000)  # acks=all times out; then the target is searched
        assert (target.log.end_offset, target.log.high_watermark) == (1, 0)
        assert world.waiting == 1
    world.follower_fetches(2, 1, topic="out")
    assert target.log.high_watermark == 1
    world.advance(2_000)
    assert world.waiting == 0
    assert [record.value for record in world.delivered()] == [b"one"]


def test_the_search_for_a_delivery_begins_at_what_cannot_be_truncated(world: TargetWorld) -> None:
    target = world.lead("out", epoch=1, replicas=(1, 2), isr=(1, 2))
    world.produce(b"uncommitted", topic="out", acks=1)
    assert target.log.end_offset == 1
    assert world.loop.run_until_complete(world.targets.end_of("out", 0)) == 0


def test_a_snapshot_has_what_is_under_way(world: TargetWorld) -> None:
    world.lose_answers = 1
    world.send(after(b"one", 100), after(b"two", 10_000))
    world.advance(100)
    captured = capture(world.state)
    assert captured is not None
    write(captured, world.sibling.folder)
    restored = read(Journal(world.sibling, lambda: None))
    assert restored is not None
    state, end = restored
    assert end == world.sibling.end_offset
    assert (state.sending, state.count) == (world.state.sending, 2)
    assert state.sending is not None
    assert state.first_offset() == 0, "its note is still needed"


@pytest.mark.parametrize(
    ("target", "config", "reason"),
    [
        ("t", SCHEDULE, "the topic itself"),
        ("__consumer_offsets", LogConfig(), "an internal topic"),
        ("__delay.out", LogConfig(), "an internal topic"),
        ("out", RECORD, "delays records itself"),
    ],
)
def test_a_target_that_cannot_be_one_refuses_records(
    world: TargetWorld, target: str, config: LogConfig, reason: str
) -> None:
    world.out = config
    world.replicas.reconfigure("out")
    world.set(delivery_delay_target=target)
    result = world.send(after(b"one", 100))
    assert result.code == ErrorCode.INVALID_RECORD
    assert reason in (result.message or "")


def test_a_record_that_the_target_would_refuse_is_refused_when_it_is_sent(world: TargetWorld) -> None:
    world.out = LogConfig(max_message_bytes=2_000)
    world.replicas.reconfigure("out")
    result = world.send(after(b"fine", 100), after(bytes(2_000), 100))
    assert result.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in result.record_errors] == [1]
    world.out = LogConfig(cleanup_policy=frozenset({"compact"}))
    world.replicas.reconfigure("out")
    builder = BatchBuilder()
    builder.append(None, b"v", after(b"", 100)[1], NOW)
    (result,) = world.produce(records=builder.build())
    assert result.code == ErrorCode.INVALID_RECORD
    assert "needs a key" in (result.message or "")
    assert world.waiting == 0


def test_a_herd_is_delivered_in_order(world: TargetWorld) -> None:
    for first in range(0, 1_000, 100):
        world.send(*(after(b"%d" % number, 1_000) for number in range(first, first + 100)))
    for _ in range(20):
        world.advance(100)
    assert [record.value for record in world.delivered()] == [b"%d" % number for number in range(1_000)]
    assert len(list(batches_of(world.log_of("out")))) < 10, "in batches"
    assert world.waiting == 0


def test_all_is_cancelled_while_records_are_under_way_and_the_size_stays_right(world: TargetWorld) -> None:
    world.send(after(b"under way", 100, id=b"a"), after(b"waits", 5_000))
    world.lose_answers = 1
    world.advance(100)
    assert world.state.sending is not None
    world.send(cancel(b"*"))
    world.advance(2_000)
    assert [record.value for record in world.delivered()] == [b"under way"]
    assert (world.waiting, world.state.size) == (0, 0)
    again = world.again()
    assert (again.waiting, again.state.size) == (0, 0)
    again.close()
