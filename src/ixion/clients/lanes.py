"""Connections on which several requests are under way: one to each broker, polled together, none waited for.

A lane remembers, for every request in it, what the caller wants to know when the answer comes (`token`). Answers come
in the order of the requests. When a lane breaks, all tokens in it come back at once, in that order, with the fault:
every token that was given to `send` comes back from `collect` exactly once, whatever the broker does.

Only `collect` waits, and for no longer than its caller says: connecting, asking for metadata and writing go on across
calls.
"""

from __future__ import annotations

import select
import time
from collections import deque
from typing import Generic, NamedTuple, TypeVar

from ixion.clients.cluster import Cluster
from ixion.clients.connection import Connection
from ixion.clients.deadline import FIRST_PAUSE_S
from ixion.clients.faults import DisconnectedError
from ixion.clients.lookup import Lookup
from ixion.clients.metadata import Topic
from ixion.model.errors import KafkaError
from ixion.protocol.notation import Struct
from ixion.protocol.registry import ApiKey

T = TypeVar("T")


class Arrival(NamedTuple, Generic[T]):
    """The answer to one request, None if it was written and gets none, or the fault that ended its lane."""

    token: T
    outcome: Struct | KafkaError | None


class Lane(Generic[T]):
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.begun_s = time.monotonic()
        self.tokens: deque[tuple[T, type[Struct]]] = deque()  # of requests that will be answered, with what
        self.unanswered: deque[T] = deque()  # of requests that get no answer, until they are written
        self.unanswered_s = 0.0  # when the first of those was sent
        self.fault: KafkaError | None = None  # that ended it

    @property
    def is_busy(self) -> bool:
        return bool(self.tokens or self.unanswered) or not self.connection.ready or self.connection.has_unsent

    @property
    def waited_s(self) -> float:
        """How long the broker has owed us the next step: a connection, an answer, room for what we write."""
        if not self.connection.ready:
            return time.monotonic() - self.begun_s
        unwritten_s = time.monotonic() - self.unanswered_s if self.unanswered else 0.0
        return max(self.connection.waited_s, unwritten_s)

    def advance(self, events: int) -> list[Arrival[T]]:
        """What the answers that have come are, decoded; with a fault, all that the lane holds comes back."""
        found: list[Arrival[T]] = []
        connection = self.connection
        try:
            connection.advance(events)
            while (answer := connection.next_answer()) is not None:
                token, kind = self.tokens.popleft()
                assert isinstance(answer, kind)
                found.append(Arrival(token, answer))
        except KafkaError as fault:
            found += self.break_off(fault)
        return found

    def take_written(self) -> list[Arrival[T]]:
        if self.connection.has_unsent:
            return []
        written = [Arrival(token, None) for token in self.unanswered]
        self.unanswered.clear()
        return written

    def break_off(self, fault: KafkaError) -> list[Arrival[T]]:
        self.fault = fault
        self.connection.close()
        lost = [Arrival(token, fault) for token in [*(token for token, _ in self.tokens), *self.unanswered]]
        self.tokens.clear()
        self.unanswered.clear()
        return lost


class Lanes(Generic[T]):
    def __init__(self, cluster: Cluster, request_timeout_s: float) -> None:
        self._cluster = cluster
        self._timeout_s = request_timeout_s
        self._lanes: dict[int, Lane[T]] = {}  # by node id
        self._faults: dict[int, tuple[KafkaError, float]] = {}  # of brokers that were not reached, and for how long
        self._lookup = Lookup(cluster, request_timeout_s)
        self._lost: list[Arrival[T]] = []  # of lanes that broke while sending

    def topic(self, name: str) -> Topic | None:
        """What is known of a topic; None while a broker is being asked. KafkaError if none can say."""
        known = self._cluster.known(name)
        if known is None:
            self._lookup.want(name)
        return known

    def ready(self, node_id: int) -> Connection | None:
        """The lane's connection, if it can take a request now; it is opened if need be. KafkaError if that failed."""
        if node_id in self._faults:
            fault, until_s = self._faults[node_id]
            if time.monotonic() < until_s:
                raise fault  # for every partition that it leads, without trying again for each
            del self._faults[node_id]
        lane = self._lanes.get(node_id)
        if lane is None:
            try:
                lane = self._lanes[node_id] = Lane(self._cluster.begin(node_id))
            except KafkaError as error:
                self._remember(node_id, error)
                raise
        connection = lane.connection
        return connection if connection.ready and not connection.has_unsent else None

    @property
    def has_lost(self) -> bool:
        """Whether a lane broke while sending, so that `collect` is called for before anything else is sent."""
        return bool(self._lost)

    def in_flight(self, node_id: int) -> int:
        lane = self._lanes.get(node_id)
        return 0 if lane is None else len(lane.tokens)

    @property
    def busy(self) -> bool:
        return bool(self._lost) or self._lookup.is_busy or any(lane.is_busy for lane in self._lanes.values())

    @property
    def holds_tokens(self) -> bool:
        return bool(self._lost) or any(lane.tokens or lane.unanswered for lane in self._lanes.values())

    def send(
        self,
        node_id: int,
        api: ApiKey,
        version: int,
        request: Struct,
        kind: type[Struct],
        token: T,
        *,
        answered: bool = True,
    ) -> None:
        """Send on the lane that was `ready`; the token comes back by `collect`, with an answer of that kind."""
        lane = self._lanes[node_id]
        if answered:
            lane.tokens.append((token, kind))
        else:
            lane.unanswered_s = lane.unanswered_s if lane.unanswered else time.monotonic()
            lane.unanswered.append(token)
        try:
            lane.connection.send(api, request, version, answered=answered)
        except BaseException as fault:
            self._lost += self._drop(node_id, lane, as_fault(fault))
            if not isinstance(fault, KafkaError):
                raise

    def collect(self, wait_s: float) -> list[Arrival[T]]:
        """What has been answered or lost, waiting up to `wait_s` for the first of it; nothing if there was progress
        of another kind, such as a connection that is ready now."""
        found, self._lost = self._lost, []
        found += [arrival for lane in self._lanes.values() for arrival in lane.take_written()]
        polled = {lane.connection.fileno(): (node, lane) for node, lane in self._lanes.items() if lane.is_busy}
        lookup = self._lookup.connection if self._lookup.is_busy else None
        if not polled and lookup is None:
            return found
        poll = select.poll()
        for _, lane in polled.values():
            poll.register(lane.connection, lane.connection.events)
        patience_s = self._timeout_s - max((lane.waited_s for _, lane in polled.values()), default=0.0)
        if lookup is not None:
            poll.register(lookup, lookup.events)
            patience_s = min(patience_s, self._lookup.patience_s)
        for file, events in poll.poll(0 if found else max(min(wait_s, patience_s), 0) * 1000):
            if file in polled:
                found += self._advance(*polled[file], events)
            else:
                self._lookup.advance(events)
        return found + self._expire()

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.connection.close()
        self._lookup.close()
        self._lanes.clear()
        self._lost.clear()

    def _advance(self, node_id: int, lane: Lane[T], events: int) -> list[Arrival[T]]:
        was_ready = lane.connection.ready
        try:
            found = lane.advance(events)
        except BaseException as fault:  # an interrupt: which answer belongs to which token is no longer sure
            self._lost += self._drop(node_id, lane, as_fault(fault))
            raise
        if lane.fault is not None:
            self._lanes.pop(node_id, None)
            if not was_ready:
                self._remember(node_id, lane.fault)
        return found + lane.take_written()

    def _expire(self) -> list[Arrival[T]]:
        self._lookup.expire()
        late = [(node, lane) for node, lane in self._lanes.items() if lane.is_busy and lane.waited_s >= self._timeout_s]
        found: list[Arrival[T]] = []
        for node, lane in late:
            fault = lane.connection.late(self._timeout_s)
            if not lane.connection.ready:
                self._remember(node, fault)
            found += self._drop(node, lane, fault)
        return found

    def _remember(self, node_id: int, fault: KafkaError) -> None:
        self._faults[node_id] = (fault, time.monotonic() + FIRST_PAUSE_S)

    def _drop(self, node_id: int, lane: Lane[T], fault: KafkaError) -> list[Arrival[T]]:
        self._lanes.pop(node_id, None)
        return lane.break_off(fault)


def as_fault(error: BaseException) -> KafkaError:
    return error if isinstance(error, KafkaError) else DisconnectedError(f"given up on {type(error).__name__}")
