"""A classic group in virtual time: joins wait for all members, sessions expire, and old generations are refused."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ixion.language.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ixion.language.protocol.messages.k10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ixion.language.protocol.messages.k11_join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from ixion.language.protocol.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from ixion.language.protocol.messages.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse
from ixion.language.protocol.messages.k14_sync_group import SyncGroupRequest, SyncGroupResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

if TYPE_CHECKING:
    from tests.clients.core.consumer_sim import ConsumerSimulation

SPOKEN_BY_GROUPS = (
    *(ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP),
    *(ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.CONSUMER_GROUP_HEARTBEAT),
)
SESSION_S = 45.0
REBALANCE_S = 60.0  # shorter than what members ask for, so that histories are short

Reply = Callable[[Struct], None]


class SimMember:
    def __init__(self) -> None:
        self.metadata: dict[str, bytes] = {}
        self.waits: Reply | None = None  # of its join or sync
        self.heard_s = 0.0


class SimCoordinator:
    def __init__(self, sim: ConsumerSimulation) -> None:
        self.sim = sim
        self.node = 0  # the broker that coordinates
        self.refusals: deque[ErrorCode] = deque()  # for the next commits
        self.generation = 0
        self.state = "empty"  # or joining, syncing, stable
        self.members: dict[str, SimMember] = {}
        self.leader = ""
        self.protocol = ""
        self.shares: dict[str, bytes] = {}
        self.offsets: dict[TopicPartition, tuple[int, int, str]] = {}
        self.commits: list[tuple[int, TopicPartition, int]] = []  # generation, place, offset
        self._numbers = 0
        self._round = 0

    def answer(self, request: Struct, reply: Reply) -> None:
        self._expire()
        match request:
            case FindCoordinatorRequest():
                host = f"node-{self.node}"
                found = Coordinator(key="g", node_id=self.node, host=host, port=9092, error_code=0, error_message=None)
                reply(FindCoordinatorResponse(coordinators=(found,)))
            case JoinGroupRequest():
                self._join(request, reply)
            case SyncGroupRequest():
                self._sync(request, reply)
            case HeartbeatRequest():
                reply(HeartbeatResponse(throttle_time_ms=0, error_code=self._heartbeat(request)))
            case LeaveGroupRequest():
                for member in request.members:
                    self._remove(member.member_id)
                reply(LeaveGroupResponse(throttle_time_ms=0, error_code=0, members=()))
            case OffsetCommitRequest():
                self._commit(request, reply)
            case OffsetFetchRequest():
                self._fetch(request, reply)
            case _:
                raise AssertionError(type(request).__name__)

    def _known(self, member_id: str, generation: int) -> int:
        if member_id not in self.members:
            return int(ErrorCode.UNKNOWN_MEMBER_ID)
        self.members[member_id].heard_s = self.sim.now_s
        return 0 if generation == self.generation else int(ErrorCode.ILLEGAL_GENERATION)

    def _heartbeat(self, request: HeartbeatRequest) -> int:
        code = self._known(request.member_id, request.generation_id)
        return code or (0 if self.state == "stable" else int(ErrorCode.REBALANCE_IN_PROGRESS))

    def _join(self, request: JoinGroupRequest, reply: Reply) -> None:
        member_id = request.member_id
        if not member_id:
            self._numbers += 1
            reply(refused_join(ErrorCode.MEMBER_ID_REQUIRED, f"m{self._numbers}"))
            return
        if member_id not in self.members and not member_id.startswith("m"):
            reply(refused_join(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
            return
        member = self.members.setdefault(member_id, SimMember())
        member.metadata = {each.name: bytes(each.metadata) for each in request.protocols}
        member.heard_s = self.sim.now_s
        self._rebalance()
        member.waits = reply
        self._maybe_joined()

    def _rebalance(self) -> None:
        if self.state in ("stable", "empty", "syncing"):
            for member in self.members.values():
                if self.state == "syncing" and member.waits is not None:
                    member.waits(refused_sync(ErrorCode.REBALANCE_IN_PROGRESS))
                member.waits = None
            self.state = "joining"
            self._round += 1
            number = self._round
            self.sim.at(REBALANCE_S, lambda: self._give_up(number))

    def _give_up(self, number: int) -> None:
        """Members that have not joined again in time are out."""
        if self.state == "joining" and self._round == number:
            for member_id in [each for each, member in self.members.items() if member.waits is None]:
                del self.members[member_id]
            self._maybe_joined()

    def _maybe_joined(self) -> None:
        if self.state != "joining" or any(member.waits is None for member in self.members.values()):
            return
        if not self.members:
            self.state = "empty"
            return
        self.generation += 1
        self.state = "syncing"
        self.shares = {}
        offered = [set(member.metadata) for member in self.members.values()]
        self.protocol = sorted(set.intersection(*offered))[0]
        self.leader = self.leader if self.leader in self.members else sorted(self.members)[0]
        rows = tuple(
            JoinGroupResponseMember(member_id=member_id, metadata=member.metadata[self.protocol])
            for member_id, member in self.members.items()
        )
        for member_id, member in self.members.items():
            waits, member.waits = member.waits, None
            assert waits is not None
            waits(
                JoinGroupResponse(
                    error_code=0,
                    generation_id=self.generation,
                    protocol_type="consumer",
                    protocol_name=self.protocol,
                    leader=self.leader,
                    member_id=member_id,
                    members=rows if member_id == self.leader else (),
                )
            )

    def _sync(self, request: SyncGroupRequest, reply: Reply) -> None:
        code = self._known(request.member_id, request.generation_id)
        if code or self.state not in ("syncing", "stable"):
            reply(refused_sync(ErrorCode(code) if code else ErrorCode.REBALANCE_IN_PROGRESS))
            return
        if self.state == "syncing" and request.member_id == self.leader:
            self.shares = {each.member_id: bytes(each.assignment) for each in request.assignments}
            self.state = "stable"
            for member_id, member in self.members.items():
                waits, member.waits = member.waits, None
                if waits is not None:
                    waits(self._share(member_id))
        if self.state == "stable":
            reply(self._share(request.member_id))
        else:
            self.members[request.member_id].waits = reply

    def _share(self, member_id: str) -> SyncGroupResponse:
        return SyncGroupResponse(error_code=0, assignment=self.shares.get(member_id, b""))

    def _remove(self, member_id: str) -> None:
        if self.members.pop(member_id, None) is not None:
            if self.state in ("stable", "syncing"):
                self._rebalance()
            self._maybe_joined()

    def _expire(self) -> None:
        for member_id, member in list(self.members.items()):
            if member.waits is None and self.sim.now_s - member.heard_s > SESSION_S:
                self._remove(member_id)

    def _commit(self, request: OffsetCommitRequest, reply: Reply) -> None:
        generation = request.generation_id_or_member_epoch
        code = self._known(request.member_id, generation) if request.member_id else 0
        if not code and self.state == "syncing":
            code = int(ErrorCode.REBALANCE_IN_PROGRESS)
        self._store(request, code, reply)

    def accept_commit(self, request: OffsetCommitRequest, reply: Reply) -> None:
        self._store(request, 0, reply)

    def refuse_commit(self, request: OffsetCommitRequest, code: ErrorCode, reply: Reply) -> None:
        self._store(request, int(code), reply)

    def _store(self, request: OffsetCommitRequest, code: int, reply: Reply) -> None:
        if not code and self.refusals:
            code = int(self.refusals.popleft())
        generation = request.generation_id_or_member_epoch
        topics = []
        for topic in request.topics:
            results = []
            for part in topic.partitions:
                if not code:
                    place = TopicPartition(topic.name, part.partition_index)
                    stored = part.committed_offset, part.committed_leader_epoch, part.committed_metadata or ""
                    self.offsets[place] = stored
                    self.commits.append((generation, place, part.committed_offset))
                results.append(OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code))
            topics.append(OffsetCommitResponseTopic(name=topic.name, partitions=tuple(results)))
        reply(OffsetCommitResponse(topics=tuple(topics)))

    def _fetch(self, request: OffsetFetchRequest, reply: Reply) -> None:
        topics = []
        for topic in request.groups[0].topics or ():
            results = []
            for number in topic.partition_indexes:
                offset, epoch, metadata = self.offsets.get(TopicPartition(topic.name, number), (-1, -1, ""))
                results.append(
                    OffsetFetchResponsePartitions(
                        partition_index=number,
                        committed_offset=offset,
                        committed_leader_epoch=epoch,
                        metadata=metadata,
                        error_code=0,
                    )
                )
            topics.append(OffsetFetchResponseTopics(name=topic.name, partitions=tuple(results)))
        group = OffsetFetchResponseGroup(group_id=request.groups[0].group_id, topics=tuple(topics))
        reply(OffsetFetchResponse(groups=(group,)))


def refused_join(code: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, protocol_name="", leader="", member_id=member_id, members=())


def refused_sync(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code, assignment=b"")
