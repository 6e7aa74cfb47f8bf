"""Connections on which several requests are under way: one to each broker, polled together.

A lane remembers, for every request in it, what the caller wants to know when the answer comes (`token`). Answers come
in the order of the requests. When a lane breaks, all tokens in it come back at once, in that order, with the fault.
"""

from __future__ import annotations

import select
from collections import deque
from typing import Generic, NamedTuple, TypeVar

from ixion.clients.cluster import Cluster
from ixion.clients.connection import Connection
from ixion.clients.deadline import Deadline
from ixion.clients.faults import TimedOutError
from ixion.model.errors import KafkaError
from ixion.protocol.notation import Struct
from ixion.protocol.registry import ApiKey
from ixion.wire import Answer

T = TypeVar("T")


class Arrival(NamedTuple, Generic[T]):
    """The answer to one request, or the fault that took it along."""

    token: T
    connection: Connection
    outcome: Answer | KafkaError


class Lane(Generic[T]):
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.tokens: deque[T] = deque()

    def break_off(self, fault: KafkaError) -> list[Arrival[T]]:
        self.connection.close()
        lost = [Arrival(token, self.connection, fault) for token in self.tokens]
        self.tokens.clear()
        return lost


class Lanes(Generic[T]):
    def __init__(self, cluster: Cluster, request_timeout_s: float) -> None:
        self._cluster = cluster
        self._timeout_s = request_timeout_s
        self._lanes: dict[int, Lane[T]] = {}  # by node id
        self._by_file: dict[int, Lane[T]] = {}
        self._poll = select.poll()
        self._lost: list[Arrival[T]] = []  # of lanes that broke while sending

    def connection(self, node_id: int) -> Connection:
        """The lane's connection, opened if need be. KafkaError if that broker cannot be reached."""
        lane = self._lanes.get(node_id)
        if lane is None or lane.connection.closed:
            lane = Lane(self._cluster.open(node_id, Deadline(self._timeout_s)))
            self._lanes[node_id] = lane
            self._by_file[lane.connection.fileno()] = lane
            self._poll.register(lane.connection, select.POLLIN)
        return lane.connection

    @property
    def has_lost(self) -> bool:
        """Whether a lane broke while sending, so that `collect` is called for before anything else is sent."""
        return bool(self._lost)

    def in_flight(self, node_id: int) -> int:
        lane = self._lanes.get(node_id)
        return 0 if lane is None else len(lane.tokens)

    @property
    def busy(self) -> bool:
        return bool(self._lost) or any(lane.tokens for lane in self._lanes.values())

    def send(
        self, node_id: int, api: ApiKey, version: int, request: Struct, token: T, *, answered: bool = True
    ) -> bool:
        """Send on the lane that `connection` opened. False if it broke; a request that was to be answered comes back
        by `collect` then, like the rest of the lane."""
        lane = self._lanes[node_id]
        if answered:
            lane.tokens.append(token)
        file = lane.connection.fileno()
        try:
            lane.connection.send(api, request, Deadline(self._timeout_s), version, answered=answered)
        except KafkaError as fault:
            self._lost += self._drop(file, fault)
            return False
        return True

    def collect(self, wait_s: float) -> list[Arrival[T]]:
        """What has been answered or lost, waiting up to `wait_s` for the first of it."""
        found, self._lost = self._lost, []
        waiting = [lane for lane in self._lanes.values() if lane.tokens]
        if waiting:
            patience_s = self._timeout_s - max(lane.connection.waited_s for lane in waiting)
            for file, _ in self._poll.poll(0 if found else max(min(wait_s, patience_s), 0) * 1000):
                found += self._read(file)
            for lane in waiting:
                if lane.tokens and lane.connection.waited_s >= self._timeout_s:
                    text = f"{lane.connection.address} gave no answer within {self._timeout_s:.3g} s"
                    found += self._drop(lane.connection.fileno(), TimedOutError(text))
        return found

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.connection.close()
        self._lanes.clear()
        self._by_file.clear()

    def _read(self, file: int) -> list[Arrival[T]]:
        lane = self._by_file[file]
        found: list[Arrival[T]] = []
        try:
            lane.connection.read()
            while (answer := lane.connection.next_answer()) is not None:
                found.append(Arrival(lane.tokens.popleft(), lane.connection, answer))
        except KafkaError as fault:
            found += self._drop(file, fault)
        return found

    def _drop(self, file: int, fault: KafkaError) -> list[Arrival[T]]:
        self._poll.unregister(file)
        return self._by_file.pop(file).break_off(fault)
