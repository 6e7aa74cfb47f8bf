"""Heartbeats beside poll, one turn at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ixion.clients.consumer.heartbeats import Heartbeats
from ixion.clients.metadata import TopicPartition
from ixion.model.errors import ErrorCode, KafkaError


class Told:
    """A member that notes what is asked of it."""

    def __init__(self) -> None:
        self.must_rejoin = False
        self.generation = 3
        self.calls: list[str] = []
        self.fault: KafkaError | None = None

    def subscribe(self, topics: Sequence[str]) -> None: ...

    def join(self, owned: Sequence[TopicPartition] = ()) -> list[TopicPartition]:
        return list(owned)

    def heartbeat_if_due(self) -> None:
        self.calls.append("heartbeat")
        if self.fault is not None:
            raise self.fault

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        return bool(offsets)

    def leave(self) -> None:
        self.calls.append("leave")
        self.generation = -1


def test_the_coordinator_hears_of_a_member_also_while_the_group_is_balanced() -> None:
    member = Told()
    beats = Heartbeats(member, max_poll_s=300)
    beats.polled(1000.0)
    beats.turn(1000.0)
    member.must_rejoin = True  # the caller is busy with its records
    beats.turn(1299.0)
    assert member.calls == ["heartbeat", "heartbeat"]
    assert not beats.expired


def test_a_caller_that_stays_away_too_long_gives_up_its_partitions() -> None:
    member = Told()
    beats = Heartbeats(member, max_poll_s=300)
    beats.polled(1000.0)
    beats.turn(1300.5)
    assert beats.expired
    beats.turn(1301.0)
    assert member.calls == ["leave"]


def test_a_fault_waits_for_the_caller() -> None:
    member = Told()
    member.fault = KafkaError(ErrorCode.FENCED_INSTANCE_ID, "another consumer has this instance id")
    beats = Heartbeats(member, max_poll_s=300)
    beats.polled(1000.0)
    beats.turn(1001.0)
    assert beats.fault is member.fault
