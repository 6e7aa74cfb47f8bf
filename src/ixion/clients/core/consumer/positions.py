"""Finds positions for partitions without one: a requested reset, the committed offset, or the reset policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ixion.clients.core.client import Client
from ixion.clients.core.connection import NEVER
from ixion.clients.core.consumer.buffer import Buffer
from ixion.clients.core.consumer.commits import Committed
from ixion.clients.core.consumer.errand import Errand
from ixion.clients.core.consumer.errors import LogTruncationError, NoOffsetError
from ixion.clients.core.consumer.lookups import OffsetLookup
from ixion.clients.core.consumer.reset import ResetPolicy
from ixion.clients.core.consumer.subscription import LATEST, Assigned, Subscription
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import KafkaError

if TYPE_CHECKING:
    from ixion.clients.core.consumer.coordinator import Coordinator


class Placing:
    """An errand for positions, and the versions of the partitions when it began."""

    def __init__(self, errand: Errand, states: list[Assigned]) -> None:
        self.errand = errand
        self.states = {state.place: (state, state.version) for state in states}


class Positions:
    def __init__(
        self,
        client: Client,
        subscription: Subscription,
        buffer: Buffer,
        coordinator: Coordinator | None,
        *,
        policy: ResetPolicy,
        read_committed: bool,
        wall_ms: Callable[[], int],
        tell: Callable[[KafkaError], None],
    ) -> None:
        self._client = client
        self._subscription = subscription
        self._buffer = buffer
        self._coordinator = coordinator
        self._policy = policy
        self._wall_ms = wall_ms
        self._read_committed = read_committed
        self._tell = tell
        self._under_way: list[Placing] = []
        self._wake_s = NEVER  # when a partition may be asked for again

    def tick(self, now_s: float) -> None:
        self._mend()
        self._wake_s = NEVER
        self._ask(now_s)
        for placing in list(self._under_way):
            self._leave_out(placing)
            placing.errand.tick(now_s)
            self._take(placing, now_s)
            if placing.errand.is_done:
                self._under_way.remove(placing)

    @property
    def wake_s(self) -> float:
        return min([self._wake_s, *[placing.errand.wake_s for placing in self._under_way]])

    @property
    def reason(self) -> KafkaError | None:
        """Why a position has not been found yet."""
        return next((placing.errand.reason for placing in self._under_way if placing.errand.reason is not None), None)

    def forget_questions(self) -> None:
        for placing in self._under_way:
            placing.errand.forget_questions()

    def fault(self) -> KafkaError | None:
        """A position does not exist and there is no reset policy: only the caller can decide."""
        if self._policy.exists:
            return None
        missing: list[TopicPartition] = []
        for state in self._subscription.assigned.values():
            if state.truncated_to is not None and not state.fetches and state.position is not None:
                return LogTruncationError(str(state.place), state.position, state.truncated_to)
            is_open = state.position is None and state.reset is None and not state.is_placing
            if is_open and (state.is_lost or self._coordinator is None):
                missing.append(state.place)
        return NoOffsetError(", ".join(map(str, sorted(missing)))) if missing else None

    def _mend(self) -> None:
        """Reset positions that no longer exist, once the buffered records of their partitions have been returned."""
        for state in self._subscription.assigned.values():
            if state.fetches:
                continue
            if state.out_of_range:
                state.forget()
                state.is_lost = True
            elif state.truncated_to is not None and self._policy.exists:
                self._subscription.place(state.place, state.truncated_to)

    def _ask(self, now_s: float) -> None:
        resets: list[Assigned] = []
        stored: list[Assigned] = []
        for state in self._subscription.assigned.values():
            if state.position is not None or state.is_placing:
                continue
            if now_s < state.not_before_s:
                self._wake_s = min(self._wake_s, state.not_before_s)
                continue
            if state.reset is None and self._coordinator is not None and not state.is_lost:
                stored.append(state)
            elif state.reset is not None or self._policy.exists:
                resets.append(state)
        if stored:
            assert self._coordinator is not None
            self._begin(Committed(self._coordinator, [state.place for state in stored]), stored)
        if resets:
            times: dict[TopicPartition, int] = {}
            for state in resets:
                times[state.place] = state.reset if state.reset is not None else self._reset_time(state)
            lookup = OffsetLookup(self._client, times, read_committed=self._read_committed, goes_on=True)
            self._begin(lookup, resets)

    def _reset_time(self, state: Assigned) -> int:
        """The timestamp to ask ListOffsets for. With a duration the end of the log is asked for first: if no record is
        young enough, reading begins there, and a record that is written between the two requests is not missed."""
        policy = self._policy
        if policy.back_ms is None:
            assert policy.to is not None
            return policy.to
        return LATEST if state.known_end is None else max(self._wall_ms() - policy.back_ms, 0)

    def _begin(self, errand: Errand, states: list[Assigned]) -> None:
        for state in states:
            state.is_placing = True
        self._under_way.append(Placing(errand, states))

    def _take(self, placing: Placing, now_s: float) -> None:
        errand = placing.errand
        if isinstance(errand, OffsetLookup):
            for place in list(errand.found):
                offset, _ = errand.found.pop(place)
                state = self._still_wanted(placing, place)
                if state is None:
                    continue
                if self._policy.back_ms is not None and state.reset is None and state.known_end is None:
                    state.known_end = offset
                    state.is_placing = False
                    self._wake_s = now_s  # and now by time
                else:
                    state.start_at(max(offset if offset >= 0 else state.known_end or 0, 0), -1)
            for place in list(errand.refused):
                self._refused(placing, place, errand.refused.pop(place), now_s)
        elif isinstance(errand, Committed) and errand.is_done:
            for place, found in errand.found.items():
                state = self._still_wanted(placing, place)
                if state is not None and found is not None:
                    state.start_at(found.offset, found.leader_epoch)
                elif state is not None:
                    state.is_placing = False
                    state.is_lost = True  # nothing is committed: the policy decides
                    self._wake_s = now_s  # and now by the policy
        if errand.is_done and errand.fault is not None:
            for place in placing.states:
                self._refused(placing, place, errand.fault, now_s)

    def _refused(self, placing: Placing, place: TopicPartition, fault: KafkaError, now_s: float) -> None:
        """Ask again later, and tell the caller."""
        state = self._still_wanted(placing, place)
        if state is None:
            return
        state.is_placing = False
        state.failures += 1
        state.not_before_s = now_s + self._client.retry.pause_s(state.failures)
        self._wake_s = min(self._wake_s, state.not_before_s)
        self._tell(fault)

    def _leave_out(self, placing: Placing) -> None:
        """Stop asking about partitions that are no longer read: the question would keep their topics in use, which
        `want_only` forgets at once, and so request metadata without end."""
        for place in [place for place in placing.states if self._still_wanted(placing, place) is None]:
            del placing.states[place]
            placing.errand.leave_out(place)
        if not placing.states:
            placing.errand.finish()

    def _still_wanted(self, placing: Placing, place: TopicPartition) -> Assigned | None:
        """The partition, unless it was revoked or got another position meanwhile."""
        known = placing.states.get(place)
        if known is None or self._subscription.assigned.get(place) is not known[0] or known[0].version != known[1]:
            return None
        return known[0]
