"""A member of a share group (KIP-932). The coordinator assigns partitions, of which other members may have some, too.

Nothing is revoked: a partition that is no longer assigned is simply not fetched any more, and records that were
acquired of it are acknowledged as before.
"""

from __future__ import annotations

from ixion.clients.core.client import Client
from ixion.clients.core.connection import ConnectionMachine
from ixion.clients.core.consumer.beating import JOINING, LEAVING, Beat, BeatingMember
from ixion.clients.core.consumer.coordinator import Coordinator
from ixion.clients.core.share.errors import ShareGroupsUnsupportedError
from ixion.clients.faults import error_code
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.ids import id_text, new_id
from ixion.language.protocol.messages.k76_share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey


class ShareMember(BeatingMember):
    def __init__(self, client: Client, coordinator: Coordinator, rack: str | None) -> None:
        super().__init__(client, coordinator, None)
        self.is_cooperative = True
        self.member_id = id_text(new_id())
        self._rack = rack

    @property
    def is_wanted(self) -> bool:
        """Whether it is in the group, or on its way in."""
        return self.generation >= 0 or self._wants_in

    def leave(self, now_s: float, reason: str, *, says_so: bool | None = None) -> None:  # noqa: ARG002  (no room for it)
        self.leave_with(None if says_so is False else LEAVING, now_s)

    def make(self, machine: ConnectionMachine, epoch: int) -> tuple[ApiKey, int, Struct]:
        api = ApiKey.SHARE_GROUP_HEARTBEAT
        try:
            version = machine.version(api)
        except KafkaError as fault:
            raise ShareGroupsUnsupportedError(self.coordinator.group, fault.message) from None
        says_all = epoch == JOINING or (epoch > JOINING and self._says_all)
        request = ShareGroupHeartbeatRequest(
            group_id=self.coordinator.group,
            member_id=self.member_id,
            member_epoch=epoch,
            rack_id=self._rack if says_all else None,
            subscribed_topic_names=self.topics if says_all else None,
        )
        return api, version, request

    def read(self, answer: Struct) -> Beat:
        assert isinstance(answer, ShareGroupHeartbeatResponse)
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

    def fault_of(self, beat: Beat) -> KafkaError:
        if beat.code == ErrorCode.UNSUPPORTED_VERSION:
            reason = f"the broker refuses it ({beat.message or beat.code.explanation})"
            return ShareGroupsUnsupportedError(self.coordinator.group, reason)
        return super().fault_of(beat)
