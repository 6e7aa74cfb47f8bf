"""Heartbeats beside poll: the one thread of a consumer in a group.

The coordinator hears from a member every `heartbeat_interval_ms`, however long the caller takes with its records. A
caller that does not come back for `max_poll_interval_ms` is given up: the member leaves, so that others get its
partitions, and the next poll joins anew.

Thread safety: `lock` is held for every call of the member, here and by the consumer. The thread holds it for one
request to the coordinator. The consumer may hold it for a whole join; no heartbeat is due meanwhile.
"""

from __future__ import annotations

import threading
import time

from ixion.clients.consumer.member import GroupMember
from ixion.model.errors import KafkaError

TURN_S = 0.1  # how soon the thread notices that a heartbeat is due, or that it should end


class Heartbeats:
    def __init__(self, member: GroupMember, max_poll_s: float) -> None:
        self.lock = threading.RLock()
        self.expired = False  # the caller took too long; the member has left
        self.fault: KafkaError | None = None  # for the caller to see
        self._member = member
        self._max_poll_s = max_poll_s
        self._polled_s = time.monotonic()
        self._ended = threading.Event()
        self._runner = threading.Thread(target=self._run, name="ixion-heartbeats", daemon=True)

    def start(self) -> None:
        self._runner.start()

    def stop(self) -> None:
        self._ended.set()
        if self._runner.is_alive():
            self._runner.join()

    def polled(self, now_s: float) -> None:
        """The caller is back."""
        self._polled_s = now_s

    def turn(self, now_s: float) -> None:
        """Do what is due."""
        with self.lock:
            if self._member.generation < 0:
                return  # not in the group
            if now_s - self._polled_s > self._max_poll_s:
                self._member.leave()
                self.expired = True
                return
            try:
                self._member.heartbeat_if_due()
            except KafkaError as error:
                self.fault = error

    def _run(self) -> None:
        while not self._ended.wait(TURN_S):
            self.turn(time.monotonic())
