"""The deadlines of streams groups. A member that is late is removed.

session    send a heartbeat                within the session timeout
revoke     revoke what it is asked for     within its rebalance timeout
begin      the first assignment of an empty group waits for more members
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from ixion.broker.coordinators.group.consumer.deadlines import Deadlines
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.member import StreamsMember
from ixion.broker.coordinators.group.streams.states import MemberState
from ixion.timer.timer import Timer

logger = logging.getLogger(__name__)

SESSION: Final = "its session ended"
REVOKE: Final = "it did not revoke its tasks in time"
BEGIN: Final = "begin"


class StreamsWatch:
    def __init__(
        self,
        timer: Timer,
        session_ms: Callable[[str], int],
        *,
        remove: Callable[[StreamsGroup, StreamsMember], None],
        begin: Callable[[StreamsGroup], None],
    ) -> None:
        self._deadlines = Deadlines(timer)
        self._session_ms = session_ms
        self._remove = remove
        self._begin = begin
        self._beginning: set[StreamsGroup] = set()

    def alive(self, group: StreamsGroup, member: StreamsMember) -> None:
        """The member sent a request. The tasks that it must revoke, if any, have not changed."""
        timeout_ms = self._session_ms(group.group_id)
        self._deadlines.set(_key(group, member, SESSION), timeout_ms, partial(self._expire, group, member, SESSION))
        if member.current.state is MemberState.UNREVOKED_TASKS:
            key, timeout_ms = _key(group, member, REVOKE), member.profile.rebalance_timeout_ms
            self._deadlines.set_if_absent(key, timeout_ms, partial(self._expire, group, member, REVOKE))
        else:
            self.asked_anew(group, member)

    def asked_anew(self, group: StreamsGroup, member: StreamsMember) -> None:
        """It must now revoke other tasks, or none: the next `alive` restarts that deadline."""
        self._deadlines.cancel(_key(group, member, REVOKE))

    def forget(self, group: StreamsGroup, member: StreamsMember) -> None:
        for what in (SESSION, REVOKE):
            self._deadlines.cancel(_key(group, member, what))

    def delay(self, group: StreamsGroup, delay_ms: int) -> None:
        self._beginning.add(group)
        self._deadlines.set_if_absent((group.group_id, BEGIN), delay_ms, partial(self._over, group))

    def is_delayed(self, group: StreamsGroup) -> bool:
        return group in self._beginning

    def end_delay(self, group: StreamsGroup) -> None:
        self._beginning.discard(group)
        self._deadlines.cancel((group.group_id, BEGIN))

    def stop(self) -> None:
        self._deadlines.clear()
        self._beginning.clear()

    def _over(self, group: StreamsGroup) -> None:
        self._beginning.discard(group)
        if not group.dead:
            self._begin(group)

    def _expire(self, group: StreamsGroup, member: StreamsMember, what: str) -> None:
        if not group.dead and group.members.get(member.member_id) is member:
            logger.info("member %s of streams group %s is removed: %s", member.member_id, group.group_id, what)
            self._remove(group, member)


def _key(group: StreamsGroup, member: StreamsMember, what: str) -> tuple[str, str, str]:
    return group.group_id, member.member_id, what
