"""A member of a consumer group (KIP-848): the coordinator assigns.

The member first revokes what it should no longer have, and reports what it owns with its next heartbeat; only then does
the coordinator assign the rest. So an assignment takes several steps:

    reads t0 t1, `assignment` is t0     the caller revokes t1      taken_over(t0): the coordinator knows that t1 is free

A member leaves with epoch -1, a static one that will return with -2. The coordinator matches subscriptions by pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ixion.clients.core.client import Client
from ixion.clients.core.connection import ConnectionMachine
from ixion.clients.core.consumer.beating import JOINING, LEAVING, Beat, BeatingMember
from ixion.clients.core.consumer.coordinator import Coordinator
from ixion.clients.faults import error_code
from ixion.clients.metadata import TopicPartition, by_topic
from ixion.language.model.ids import id_text, new_id
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

LEAVING_FOR_A_WHILE: Final = -2  # a static member
PATTERNS_FROM: Final = 1  # the first version that carries a pattern


class ServedMember(BeatingMember):
    def __init__(
        self,
        client: Client,
        coordinator: Coordinator,
        *,
        instance_id: str | None,
        rebalance_s: float,
        assignor: str | None,
        rack: str | None,
    ) -> None:
        super().__init__(client, coordinator, instance_id)
        self.is_cooperative = True
        self.pattern: str | None = None
        self.member_id = id_text(new_id())
        self._rebalance_ms = int(rebalance_s * 1000)
        self._assignor = assignor
        self._rack = rack
        self._owned: list[TopicPartition] = []  # what we read
        self._had_pattern = False  # the coordinator knows one

    def follow(self, pattern: str | None) -> None:
        """Subscribe to topics that the coordinator matches."""
        self.pattern = pattern
        self.subscribe(())

    def begin(self, owned: Sequence[TopicPartition]) -> None:
        super().begin(owned)
        if self.generation < 0:
            self._owned = []

    def taken_over(self, owned: Sequence[TopicPartition], now_s: float) -> None:
        self._owned = sorted(owned)
        read = {place.topic for place in owned}
        self.topic_ids = {name: topic_id for name, topic_id in self.topic_ids.items() if name in read}
        self._says_owned = True
        self._next_s = now_s

    def leave(self, now_s: float, reason: str, *, says_so: bool | None = None) -> None:  # noqa: ARG002  (no room for it)
        is_for_good = self.instance_id is None or says_so is True
        epoch = None if says_so is False else LEAVING if is_for_good else LEAVING_FOR_A_WHILE
        self.leave_with(epoch, now_s)

    def lose(self) -> None:
        super().lose()
        self._owned = []

    def read(self, answer: Struct) -> Beat:
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        assigned = answer.assignment
        return Beat(
            error_code(answer.error_code),
            answer.error_message,
            answer.member_id,
            answer.member_epoch,
            answer.heartbeat_interval_ms,
            None
            if assigned is None
            else tuple([(each.topic_id, each.partitions) for each in assigned.topic_partitions]),
        )

    def make(self, machine: ConnectionMachine, epoch: int) -> tuple[ApiKey, int, Struct]:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.coordinator.group, member_id=self.member_id, member_epoch=epoch, instance_id=self.instance_id
        )
        oldest = PATTERNS_FROM if self.pattern is not None else 0
        version = machine.version(ApiKey.CONSUMER_GROUP_HEARTBEAT, oldest=oldest)
        if epoch >= JOINING:
            if epoch == JOINING or self._says_all:
                request = request.replace(
                    rebalance_timeout_ms=self._rebalance_ms,
                    rack_id=self._rack,
                    subscribed_topic_names=self.topics,
                    server_assignor=self._assignor,
                )
                if self.pattern is not None:
                    request = request.replace(subscribed_topic_regex=self.pattern)
                elif self._had_pattern:
                    request = request.replace(subscribed_topic_regex="")  # no longer
            if epoch == JOINING or self._says_all or self._says_owned:
                request = request.replace(topic_partitions=self._wire_owned())
            self._had_pattern = self.pattern is not None
        return ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request

    def _wire_owned(self) -> tuple[TopicPartitions, ...]:
        return tuple(
            [
                TopicPartitions(topic_id=self.topic_ids[name], partitions=tuple(numbers))
                for name, numbers in by_topic(self._owned).items()
            ]
        )
