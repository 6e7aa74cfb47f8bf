"""A member of the classic protocol that behaves as an eager client: it gives up all its partitions before it rejoins,
and assigns them if it leads.

Use it on a `World` of `kit` beside the clients of `consumer_kit`, to test groups that change their protocol. Single
requests of the classic protocol are in `kit` itself.
"""

from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k11_join_group import JoinGroupResponse
from ixion.language.protocol.storage import decode, encode
from ixion.language.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from tests.coordinators.group.consumer_kit import Partition
from tests.coordinators.group.kit import Answer, World


class EagerClient:
    """`owned` is what it reads; it goes one request further with every `beat`."""

    def __init__(self, world: World, name: str, *topics: str) -> None:
        self.world = world
        self.name = name
        self.topics = topics
        self.member_id = ""
        self.epoch = 0  # its generation; 0: it is in none
        self.owned: set[Partition] = set()
        self._joining: Answer | None = None
        self._syncing: Answer | None = None
        self.is_stable = False

    def beat(self) -> None:
        if self._joining is not None:
            self._joined(self._joining)
        elif self._syncing is not None:
            self._synced(self._syncing)
        elif self.is_stable:
            self._hear(self.world.heartbeat(self.member_id, self.epoch))
        else:
            subscription = encode(ConsumerProtocolSubscription(topics=self.topics, owned_partitions=()), 1)
            protocols = {"range": subscription}
            self._joining = self.world.join(self.member_id, client=self.name, protocols=protocols, session_ms=45_000)

    def commit_epoch(self) -> int:
        return self.epoch

    def leave(self) -> None:
        self.world.leave(self.member_id)

    def _joined(self, answer: Answer) -> None:
        if answer.waits:
            return
        self._joining = None
        if answer.code is ErrorCode.NONE:
            told = answer.join
            self.member_id, self.epoch = told.member_id, told.generation_id
            given = self._assign(told) if told.leader == told.member_id else {}
            self._syncing = self.world.sync(self.member_id, self.epoch, given)
        else:
            self._hear(answer.code)

    def _synced(self, answer: Answer) -> None:
        if answer.waits:
            return
        self._syncing = None
        if answer.code is ErrorCode.NONE:
            read = decode(ConsumerProtocolAssignment, answer.sync.assignment)
            self.owned = {(each.topic, number) for each in read.assigned_partitions for number in each.partitions}
            self.is_stable = True
        else:
            self._hear(answer.code)

    def _hear(self, code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            return
        self.is_stable = False
        self.owned.clear()
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id, self.epoch = "", 0
        else:
            again = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.NOT_COORDINATOR)
            assert code in again, code.name

    def _assign(self, told: JoinGroupResponse) -> dict[str, bytes]:
        readers = {each.member_id: decode(ConsumerProtocolSubscription, each.metadata).topics for each in told.members}
        shares: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in readers}
        for name in sorted({topic for topics in readers.values() for topic in topics}):
            topic = self.world.topics.by_name(name)
            able = [member_id for member_id, topics in readers.items() if name in topics]
            for number in range(0 if topic is None else topic.partitions):
                shares[able[number % len(able)]].setdefault(name, []).append(number)
        return {member_id: _encoded(share) for member_id, share in shares.items()}


def _encoded(share: dict[str, list[int]]) -> bytes:
    named = tuple(TopicPartition(topic=name, partitions=tuple(numbers)) for name, numbers in share.items())
    return encode(ConsumerProtocolAssignment(assigned_partitions=named), 1)
