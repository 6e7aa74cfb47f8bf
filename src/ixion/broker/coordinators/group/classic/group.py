"""A classic group: its members, its generation and its state. No I/O and no clock; times are arguments.

A generation is one assignment of partitions to members. It grows by one with every completed rebalance. A request with
an older generation gets ILLEGAL_GENERATION. So a member that slept through a rebalance cannot commit offsets of
partitions that it no longer has.

The protocol of a generation is elected: of the protocols that all members support, each member votes for the one it
lists first, and most votes win. With members [range, sticky], [sticky, range], [sticky] only sticky is a candidate.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ixion.broker.coordinators.group.classic.member import ClassicMember, Protocols, RespondJoin, size_of
from ixion.broker.coordinators.group.classic.states import (
    BEFORE,
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    GroupState,
    check_transition,
)
from ixion.broker.coordinators.group.classic.subscriptions import subscribed_topics
from ixion.language.protocol.messages.k11_join_group import JoinGroupResponse
from ixion.language.protocol.messages.k14_sync_group import SyncGroupResponse

CONSUMER = "consumer"  # the protocol type of consumers, whose subscriptions the broker can read


class ClassicGroup:
    def __init__(self, group_id: str, now_ms: int, state: GroupState = EMPTY) -> None:
        self.group_id = group_id
        self.state = state
        self.state_since_ms = now_ms  # -1 if the record is too old to have it
        self.generation = 0
        self.protocol_type: str | None = None  # None: no member ever joined; offsets are committed from outside
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.pending_members: set[str] = set()  # ids that were given out and have not been used yet
        self.pending_sync: set[str] = set()  # members of the generation that have not sent SyncGroup
        self.new_member_added = False  # during the initial delay, which is then extended
        self.awaiting_join = 0  # members whose JoinGroup waits
        self.subscribed: frozenset[str] | None = None  # None: not known
        self.metadata_bytes = 0  # of all protocols and names of all members
        self._support: Counter[str] = Counter()  # members by protocol

    @property
    def can_rebalance(self) -> bool:
        return self.state in BEFORE[PREPARING_REBALANCE]

    @property
    def is_awaited(self) -> bool:
        """Whether a member is expected: it was given an id, or a rebalance waits for it."""
        return bool(self.pending_members) or self.state is not EMPTY

    @property
    def has_all_members_joined(self) -> bool:
        return len(self.members) == self.awaiting_join and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of any member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def transition(self, state: GroupState, now_ms: int) -> None:
        check_transition(self.group_id, self.state, state)
        self.state = state
        self.state_since_ms = now_ms

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these protocols can join the present ones."""
        if self.state is EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        size = len(self.members)
        return self.protocol_type == protocol_type and any(self._support[name] == size for name in names)

    def add(self, member: ClassicMember, respond: RespondJoin | None = None) -> None:
        if member.instance_id is not None:
            if member.instance_id in self.static_members:
                raise ValueError(f"group {self.group_id!r} has instance {member.instance_id!r} already")
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._support.update(name for name, _ in member.protocols)
        self.metadata_bytes += size_of(member.protocols) + member.names_bytes
        self.pending_members.discard(member.member_id)
        self.await_join(member, respond)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._support.subtract(name for name, _ in member.protocols)
            self.metadata_bytes -= size_of(member.protocols) + member.names_bytes
            self.await_join(member, None)
            if member.instance_id is not None:
                del self.static_members[member.instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_members.discard(member_id)
        self.pending_sync.discard(member_id)

    def update(
        self,
        member: ClassicMember,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        respond: RespondJoin | None,
    ) -> None:
        self._support.subtract(name for name, _ in member.protocols)
        self.metadata_bytes += size_of(protocols) - size_of(member.protocols)
        member.protocols = protocols
        self._support.update(name for name, _ in protocols)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self.await_join(member, respond)

    def rename_static(self, instance_id: str, new_id: str) -> ClassicMember:
        """Give the instance a new member id. The order of members, and so of the leader's list, stays."""
        old_id = self.static_members[instance_id]
        member = self.members[old_id]
        member.member_id = new_id
        self.members = {(new_id if key == old_id else key): each for key, each in self.members.items()}
        self.static_members[instance_id] = new_id
        if self.leader_id == old_id:
            self.leader_id = new_id
        if old_id in self.pending_sync:
            self.pending_sync.remove(old_id)
            self.pending_sync.add(new_id)
        return member

    def await_join(self, member: ClassicMember, respond: RespondJoin | None) -> None:
        """The only place that sets `respond_join`, so that the count is right."""
        self.awaiting_join += (respond is not None) - member.awaits_join
        member.respond_join = respond

    def answer_join(self, member: ClassicMember, answer: JoinGroupResponse) -> None:
        """Does nothing if no JoinGroup of the member waits."""
        respond = member.respond_join
        if respond is not None:
            self.await_join(member, None)
            respond(answer)

    def answer_sync(self, member: ClassicMember, answer: SyncGroupResponse) -> bool:
        """False if no SyncGroup of the member waits."""
        respond = member.respond_sync
        if respond is None:
            return False
        member.respond_sync = None
        respond(answer)
        return True

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined; else the first member that has joined leads. False if none has."""
        leader = self.members.get(self.leader_id) if self.leader_id is not None else None
        if leader is not None and leader.awaits_join:
            return True
        for member in self.members.values():
            if member.awaits_join:
                self.leader_id = member.member_id
                return True
        return False

    def elect_protocol(self) -> str:
        size = len(self.members)
        candidates = {name for name, count in self._support.items() if count == size}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def next_generation(self, now_ms: int) -> None:
        self.generation += 1
        self.pending_sync.clear()
        if self.members:
            self.protocol_name = self.elect_protocol()
            self.transition(COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol_name = None
            self.transition(EMPTY, now_ms)
        self.find_subscribed()

    def find_subscribed(self) -> None:
        """Set `subscribed` to the topics of this generation, if they are consumers with readable subscriptions."""
        if self.protocol_type != CONSUMER:
            self.subscribed = None
        elif not self.members:
            self.subscribed = frozenset()
        elif self.protocol_name is not None:
            name = self.protocol_name
            self.subscribed = subscribed_topics(member.metadata(name) for member in self.members.values())

    def reads(self, topic: str) -> bool:
        """Whether a member may read the topic; True if that is not known."""
        return self.subscribed is None or topic in self.subscribed
