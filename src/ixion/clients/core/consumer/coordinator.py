"""Finds the broker that coordinates a group, and keeps a connection to it that nothing else uses.

A coordinator may hold the answer to a join for minutes, so fetches use another connection.
"""

from __future__ import annotations

from typing import Final

from ixion.clients.core.client import COORDINATOR, Client
from ixion.clients.core.connection import NEVER, ConnectionMachine, Outcome, Pending
from ixion.clients.core.coordinators import read_coordinator
from ixion.clients.faults import DisconnectedError
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ixion.language.protocol.registry import ApiKey

GROUP: Final = 0
LAST_OF_ONE: Final = 3  # later versions ask for several keys at once
MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class Coordinator(Pending):
    def __init__(self, client: Client, group: str) -> None:
        self.group = group
        self.fault: KafkaError | None = None  # why it cannot be found, if no retry can help
        self.reason: KafkaError | None = None  # why it is not found yet
        self.client = client
        self._node_id = -1
        self._is_asking = False
        self._failures = 0
        self._not_before_s = 0.0
        self._wake_s = NEVER

    @property
    def wake_s(self) -> float:
        """When `ready` is worth another call."""
        return self._wake_s

    def ready(self, now_s: float) -> ConnectionMachine | None:
        """The connection to the coordinator, if it can take requests; else look for the coordinator."""
        self._wake_s = NEVER
        if self._node_id >= 0:
            node_id = self._node_id | COORDINATOR
            machine = self.client.ready(node_id, now_s)
            if machine is not None:
                self._failures = 0
                return machine
            if self.client.is_connecting(node_id):
                return None
            self.lose()  # it could not be reached: another may coordinate by now
            self._pause(now_s)
        self._find(now_s)
        return None

    def lose(self) -> None:
        """Forget the coordinator: it has moved, or cannot be reached."""
        self._node_id = -1

    def hang_up(self, now_s: float) -> None:
        """Close the connection: a request that the coordinator holds on it would delay the next one."""
        if self._node_id >= 0:
            machine = self.client.ready(self._node_id | COORDINATOR, now_s)
            if machine is not None:
                machine.close(DisconnectedError("closed to send another request"))

    def forget_question(self) -> None:
        self._is_asking = False

    def complete(self, outcome: Outcome, now_s: float) -> None:
        self._is_asking = False
        if isinstance(outcome, FindCoordinatorResponse):
            node_id, code, address = read_coordinator(outcome)
            if code == ErrorCode.NONE and node_id >= 0:
                self.client.introduce(node_id, address)
                self._node_id = node_id
                self.fault = None
                return
            fault = KafkaError(code, f"the coordinator of group {self.group!r}: {code.explanation}")
            self.reason = fault
            if code != ErrorCode.NONE and not code.retriable:
                self.fault = fault
        self._pause(now_s)

    def _pause(self, now_s: float) -> None:
        self._failures += 1
        self._not_before_s = now_s + self.client.retry.pause_s(self._failures)

    def _find(self, now_s: float) -> None:
        if self._is_asking:
            return
        if now_s < self._not_before_s:
            self._wake_s = self._not_before_s
            return
        machine = self.client.least_loaded(now_s)
        if machine is None:
            self._wake_s = self.client.some_ready_s
            return
        try:
            version = machine.version(ApiKey.FIND_COORDINATOR)
        except KafkaError as fault:
            self.fault = fault
            self._not_before_s = NEVER
            return
        if version > LAST_OF_ONE:
            request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=(self.group,))
        else:
            request = FindCoordinatorRequest(key=self.group, key_type=GROUP)
        self._is_asking = True
        machine.send(ApiKey.FIND_COORDINATOR, version, request, self, now_s)
