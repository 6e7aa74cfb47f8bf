"""A question to brokers, of a caller or of the consumer itself, repeated until it succeeds or fails for good.

    errand = EndOffsets(…)
    machine.start(errand)
    ...                                  # tick until `errand.is_done`
    errand.check()                       # raises its fault

An errand has at most one request in flight to each broker. Retriable faults are retried after the pauses of
`retry.backoff.ms`; the caller decides for how long.
"""

from __future__ import annotations

from ixion._native import mypyc_attr
from ixion.clients.core.client import Client
from ixion.clients.core.connection import NEVER
from ixion.clients.faults import TimedOutError
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import KafkaError


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
        """Send the requests that can be sent now."""
        raise NotImplementedError

    @property
    def wake_s(self) -> float:
        """When `tick` has something to do even if no socket is ready."""
        raise NotImplementedError

    def forget_questions(self) -> None:
        """Forget requests in flight: their connections are closed."""

    def leave_out(self, place: TopicPartition) -> None:
        """Nobody needs the answer about this partition any more."""

    def finish(self, fault: KafkaError | None = None) -> None:
        if not self.is_done:
            self.is_done = True
            self.fault = fault

    def retry(self, reason: KafkaError, now_s: float) -> None:
        """Retry later, for that reason."""
        self.reason = reason
        self.failures += 1
        self.not_before_s = now_s + self.client.retry.pause_s(self.failures)

    def check(self) -> None:
        if self.fault is not None:
            raise self.fault

    def late(self, seconds: float) -> KafkaError:
        """The fault of an errand that is not done in time."""
        reason = self.reason or self.client.fault
        because = "" if reason is None else f"; {reason.message}"
        return TimedOutError(f"{self.what}: not done within {seconds:.3g} s{because}")


def node_wake_s(client: Client, node_id: int, now_s: float) -> float:
    """When to try a broker without a ready connection again; a new connection wakes us by itself."""
    if client.is_connecting(node_id):
        return NEVER
    may_try_s = client.may_try_s(node_id)
    return may_try_s if may_try_s > now_s else NEVER
