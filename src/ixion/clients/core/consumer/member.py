"""A member of a group, for both group protocols.

The member does by itself what needs no caller: heartbeats, the steps of a begun join, leaving. Changes of the
assignment wait for the caller's next poll: `must_rejoin` asks for `begin`, and `assignment` is what the group has
decided since. `has_lost` says that the group has removed this member and given its partitions to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ixion._native import mypyc_attr
from ixion.clients.core.client import Client
from ixion.clients.core.connection import NEVER, Outcome, Pending
from ixion.clients.core.consumer.coordinator import MOVED, Coordinator
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.notation import Struct

FENCED: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_MEMBER_EPOCH)
AWAY: Final = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NETWORK_EXCEPTION, ErrorCode.BROKER_NOT_AVAILABLE)


@mypyc_attr(allow_interpreted_subclasses=True)
class Member:
    is_cooperative = False  # whether partitions are read during a rebalance

    def __init__(self, client: Client, coordinator: Coordinator, instance_id: str | None) -> None:
        self.client = client
        self.coordinator = coordinator
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1  # or epoch; -1 while it is not in the group
        self.topics: tuple[str, ...] = ()
        self.must_rejoin = True  # the assignment has changed, or will
        self.is_joining = False  # a join has been begun and is not over
        self.has_lost = False
        self.is_leaving = False
        self.assignment: list[TopicPartition] | None = None  # decided by the group, not taken over yet
        self.fault: KafkaError | None = None  # for the caller to see
        self.failures = 0
        self.not_before_s = 0.0
        self._asked: MemberCall | None = None  # the request in flight
        self._next_s = NEVER  # when the next heartbeat is due
        self._wake_s = NEVER

    def subscribe(self, topics: Sequence[str]) -> None:
        """Change the subscribed topics."""
        self.topics = tuple(topics)
        self.must_rejoin = True

    def begin(self, owned: Sequence[TopicPartition]) -> None:
        """Take part in the next assignment: the caller polls, and has revoked what it must."""
        raise NotImplementedError

    def taken_over(self, owned: Sequence[TopicPartition], now_s: float) -> None:
        """The caller now reads these, as assigned."""
        raise NotImplementedError

    def tick(self, now_s: float) -> None:
        raise NotImplementedError

    @property
    def wake_s(self) -> float:
        return NEVER if self._asked is not None else self._wake_s

    def leave(self, now_s: float, reason: str, *, says_so: bool | None = None) -> None:
        """Leave; `is_leaving` until the coordinator knows. With `says_so` None the protocol decides: a static member of
        a classic group does not send LeaveGroup."""
        raise NotImplementedError

    def hear(self, code: ErrorCode, now_s: float) -> None:
        """Handle an error code of the coordinator."""
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            # While it is joining, this answers a request from before: it takes part in that rebalance already.
            self.must_rejoin = self.must_rejoin or not self.is_joining
        elif code in FENCED:
            self.lose()
        elif code in MOVED:
            self.coordinator.lose()
            self.pause(now_s)
        elif code.retriable or code in AWAY:
            self.pause(now_s)
        elif code != ErrorCode.NONE:
            self.fault = KafkaError(code, f"group {self.coordinator.group!r}: {code.explanation}")
            self.pause(now_s)

    def hurry(self, now_s: float) -> None:
        """Send the next heartbeat now."""
        self._next_s = min(self._next_s, now_s)

    def lose(self) -> None:
        """The group has removed this member."""
        self.has_lost = True
        self.must_rejoin = True
        self.generation = -1
        self.is_joining = False
        self.assignment = None
        self._next_s = NEVER

    def pause(self, now_s: float) -> None:
        self.failures += 1
        self.not_before_s = now_s + self.client.retry.pause_s(self.failures)

    def forget_question(self) -> None:
        """Forget the request in flight: its connection is closed."""
        if self._asked is not None:
            asked = self._asked
            self._asked = None
            self.unanswered(asked.kind, 0.0)

    def answered(self, answer: MemberCall, outcome: Outcome, now_s: float) -> None:
        if self._asked is not answer:
            return  # an answer to an abandoned attempt
        self._asked = None
        if isinstance(outcome, Struct):
            self.take(answer.kind, outcome, now_s)
        else:
            self.coordinator.lose()
            self.unanswered(answer.kind, now_s)

    def take(self, kind: str, answer: Struct, now_s: float) -> None:
        raise NotImplementedError

    def unanswered(self, kind: str, now_s: float) -> None:
        raise NotImplementedError


class MemberCall(Pending):
    def __init__(self, member: Member, kind: str) -> None:
        self.kind = kind
        self._member = member

    def complete(self, outcome: Outcome, now_s: float) -> None:
        self._member.answered(self, outcome, now_s)
