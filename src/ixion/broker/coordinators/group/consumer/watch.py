"""The deadlines of members of consumer groups. A member that is late is removed.

session    send a heartbeat                within the session timeout
revoke     revoke what it is asked for      within its rebalance timeout
join       join again when asked to        within its rebalance timeout    members of the classic protocol
sync       send SyncGroup                  within its rebalance timeout    members of the classic protocol
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final

from ixion.broker.coordinators.group.consumer.deadlines import Deadlines
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.limits import GroupLimits
from ixion.broker.coordinators.group.consumer.member import ConsumerMember
from ixion.broker.coordinators.group.consumer.states import MemberState
from ixion.timer.timer import Timer

logger = logging.getLogger(__name__)

SESSION: Final = "its session ended"
REVOKE: Final = "it did not revoke its partitions in time"
JOIN: Final = "it did not join again in time"
SYNC: Final = "it did not send SyncGroup in time"

Remove = Callable[[ConsumerGroup, Collection[ConsumerMember], str], None]


class MemberTimeouts:
    def __init__(self, timer: Timer, limits: GroupLimits, remove: Remove) -> None:
        self._deadlines = Deadlines(timer)
        self._limits = limits
        self._remove = remove

    def alive(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """The member sent a request. The partitions that it must revoke, if any, have not changed."""
        classic = member.subscription.classic
        timeout_ms = self._limits.session_timeout_ms(group.group_id) if classic is None else classic.session_timeout_ms
        self._deadlines.set(_key(group, member, SESSION), timeout_ms, self._expiry(group, member, SESSION))
        if member.current.state is MemberState.UNREVOKED_PARTITIONS and classic is None:
            self._expect(group, member, REVOKE)
        else:
            self._deadlines.cancel(_key(group, member, REVOKE))

    def asked_anew(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """It must now revoke other partitions: the next `alive` restarts that deadline."""
        self._deadlines.cancel(_key(group, member, REVOKE))

    def sent_to_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        self._expect(group, member, JOIN)

    def joined(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        self._deadlines.cancel(_key(group, member, JOIN))
        self._deadlines.cancel(_key(group, member, SYNC))
        self._expect(group, member, SYNC)

    def synced(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        self._deadlines.cancel(_key(group, member, SYNC))

    def forget(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """Drop all deadlines of the member."""
        for what in (SESSION, REVOKE, JOIN, SYNC):
            self._deadlines.cancel(_key(group, member, what))

    def stop(self) -> None:
        self._deadlines.clear()

    def _expect(self, group: ConsumerGroup, member: ConsumerMember, what: str) -> None:
        timeout_ms = member.subscription.rebalance_timeout_ms
        self._deadlines.set_if_absent(_key(group, member, what), timeout_ms, self._expiry(group, member, what))

    def _expiry(self, group: ConsumerGroup, member: ConsumerMember, what: str) -> Callable[[], None]:
        def expire() -> None:
            if not group.dead and group.members.get(member.member_id) is member:
                logger.info("member %s of group %s is removed: %s", member.member_id, group.group_id, what)
                self._remove(group, (member,), what)

        return expire


def _key(group: ConsumerGroup, member: ConsumerMember, what: str) -> tuple[str, str, str]:
    return group.group_id, member.member_id, what
