"""Something that a caller, or the consumer itself, wants from brokers: asked until it succeeds or fails for good.

    errand = EndOffsets(…)
    machine.start(errand)
    ...                                  # tick until `errand.is_done`
    errand.check()                       # raises its fault

An errand has at most one request under way to each broker. What a retry can mend is asked for again, after the pauses
of `retry.backoff.ms`; how long that goes on is the caller's decision.
"""

from __future__ import annotations

from ixion._native import mypyc_attr
from ixion.clients.core.client import Client
from ixion.clients.core.connection import NEVER
from ixion.clients.faults import TimedOutError
from ixion.model.errors import KafkaError


@mypyc_attr(allow_interpreted_subclasses=True)
class Errand:
    def __init__(self, client: Client, what: str) -> None:
        self.what = what
        self.is_done = False
        self.fault: KafkaError | None = None
        self.reason: KafkaError | None = None  # why it is not done yet
        self.client = client
        self.failures = 0
        self.not_before_s = 0.0

    def tick(self, now_s: float) -> None:
        """Ask what can be asked now."""
        raise NotImplementedError

    @property
    def wake_s(self) -> float:
        """When `tick` has something to do even if no socket stirs."""
        raise NotImplementedError

    def forget_questions(self) -> None:
        """The connections of its requests are closed, and no answer will come."""

    def finish(self, fault: KafkaError | None = None) -> None:
        if not self.is_done:
            self.is_done = True
            self.fault = fault

    def retry(self, reason: KafkaError, now_s: float) -> None:
        """Later, because of that."""
        self.reason = reason
        self.failures += 1
        self.not_before_s = now_s + self.client.retry.pause_s(self.failures)

    def check(self) -> None:
        if self.fault is not None:
            raise self.fault

    def late(self, seconds: float) -> KafkaError:
        """The fault of one that is not done in time."""
        reason = self.reason or self.client.fault
        because = "" if reason is None else f"; {reason.message}"
        return TimedOutError(f"{self.what}: not done within {seconds:.3g} s{because}")


def node_wake_s(client: Client, node_id: int, now_s: float) -> float:
    """When a broker without a ready connection is worth another look; a connection that comes up is news in itself."""
    if client.is_connecting(node_id):
        return NEVER
    may_try_s = client.may_try_s(node_id)
    return may_try_s if may_try_s > now_s else NEVER
