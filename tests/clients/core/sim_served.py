"""A consumer group (KIP-848) in virtual time: the coordinator assigns, gives away only what is free, and fences.

It also lies: now and then it says that it does not know a member that it knows, that another broker coordinates, or
that it is loading, and it forgets members. Answers are lost as those of all brokers here, so a member may be an epoch
behind; that one epoch is accepted, as by Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k08_offset_commit import OffsetCommitRequest
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ixion.language.protocol.notation import Struct
from tests.clients.core.sim_group import SESSION_S, Reply, SimCoordinator

if TYPE_CHECKING:
    from tests.clients.core.consumer_sim import ConsumerSimulation

BEAT_MS = 1000
LIES = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
)


class Served:
    def __init__(self) -> None:
        self.epoch = 0
        self.previous = -1
        self.owned: set[int] = set()  # nobody else may read these
        self.target: set[int] = set()
        self.told: set[int] | None = None
        self.heard_s = 0.0


class ServedCoordinator(SimCoordinator):
    def __init__(self, sim: ConsumerSimulation, topic_id: bytes) -> None:
        super().__init__(sim)
        self.served: dict[str, Served] = {}
        self.epoch = 0
        self._topic_id = topic_id

    def answer(self, request: Struct, reply: Reply) -> None:
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            for name, member in list(self.served.items()):
                if self.sim.now_s - member.heard_s > SESSION_S:
                    self._part(name)
            reply(self._beat(request))
        elif isinstance(request, OffsetCommitRequest) and request.member_id:
            known = self.served.get(request.member_id)
            generation = request.generation_id_or_member_epoch
            if known is None:
                self.refuse_commit(request, ErrorCode.UNKNOWN_MEMBER_ID, reply)
            elif generation != known.epoch:
                self.refuse_commit(request, ErrorCode.STALE_MEMBER_EPOCH, reply)
            else:
                self.accept_commit(request, reply)
        else:
            super().answer(request, reply)

    def check(self) -> None:
        """No partition is two members'."""
        owned = [number for member in self.served.values() for number in member.owned]
        assert len(owned) == len(set(owned)), owned

    def _beat(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        name, epoch = request.member_id, request.member_epoch
        if epoch < 0:
            self._part(name)
            return self._say(ErrorCode.NONE, name, epoch)
        if self.sim.choose.random() < self.sim.trouble / 4:
            return self._say(self.sim.choose.choice(LIES), name, epoch)
        if self.sim.choose.random() < self.sim.trouble / 20:
            self._part(name)  # as if the coordinator had been elected anew without its records
        member = self.served.get(name)
        if epoch == 0:
            member = self.served[name] = Served()
            self._share_out()
        elif member is None:
            return self._say(ErrorCode.UNKNOWN_MEMBER_ID, name, epoch)
        elif epoch not in (member.epoch, member.previous):
            return self._say(ErrorCode.FENCED_MEMBER_EPOCH, name, epoch)
        member.heard_s = self.sim.now_s
        if request.topic_partitions is not None:
            used = {number for topic in request.topic_partitions for number in topic.partitions}
            if epoch == member.previous and not used <= member.owned:
                return self._say(ErrorCode.FENCED_MEMBER_EPOCH, name, epoch)
            member.owned -= (member.owned - member.target) - used  # given up
        assigned = self._reconcile(member)
        answer = self._say(ErrorCode.NONE, name, member.epoch)
        if assigned != member.told or request.subscribed_topic_names is not None:
            member.told = assigned
            parts = (TopicPartitions(topic_id=self._topic_id, partitions=tuple(sorted(assigned))),) if assigned else ()
            answer = answer.replace(assignment=Assignment(topic_partitions=parts))
        self.check()
        return answer

    def _reconcile(self, member: Served) -> set[int]:
        """What the member should have now: first it gives up what is not in its target, then it gets what is free."""
        if member.owned - member.target:
            return member.owned & member.target
        if member.epoch != self.epoch:
            member.previous, member.epoch = member.epoch, self.epoch
        taken = {number for other in self.served.values() if other is not member for number in other.owned}
        member.owned |= member.target - taken
        return set(member.owned)

    def _share_out(self) -> None:
        self.epoch += 1
        names = sorted(self.served)
        for at, name in enumerate(names):
            self.served[name].target = set(range(at, len(self.sim.logs), len(names)))

    def _part(self, name: str) -> None:
        if self.served.pop(name, None) is not None:
            self._share_out()

    def _say(self, code: ErrorCode, name: str, epoch: int) -> ConsumerGroupHeartbeatResponse:
        return ConsumerGroupHeartbeatResponse(
            error_code=code, member_id=name, member_epoch=epoch, heartbeat_interval_ms=BEAT_MS
        )
