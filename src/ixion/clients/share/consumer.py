"""A share consumer: takes records from a queue, each locked for it until it is acknowledged (KIP-932).

    with ShareConsumer("127.0.0.1:9092", group="workers", topics=["jobs"]) as consumer:
        for record in consumer:
            work(record.value)              # accepted when the next one is asked for

    with ShareConsumer("127.0.0.1:9092", group="workers", topics=["jobs"],
                       share_acknowledgement_mode="explicit") as consumer:
        for record in consumer:
            try:
                work(record.value)
            except TryLater:
                consumer.release(record, delay=30)      # comes back in half a minute, perhaps to another worker
            except Hopeless:
                consumer.reject(record)
            else:
                consumer.accept(record)

Locks of records that are handed out are renewed in the background, until `max_poll_interval_ms` has passed since the
last poll. A consumer is polled by one thread at a time; records may be acknowledged, and results awaited, from any.

`ixion.clients.core.share` decides; this module waits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Generic, Unpack

from ixion.clients.address import Bootstrap
from ixion.clients.consumer.guard import ConcurrentUseError, SingleThread
from ixion.clients.consumer.types import K, V
from ixion.clients.core.consumer.errors import ConsumerClosedError, WakeupError
from ixion.clients.core.share.acknowledgement import ACCEPT, REJECT, RELEASE, RENEW, Acknowledgement
from ixion.clients.core.share.machine import ShareMachine
from ixion.clients.engine import Engine
from ixion.clients.faults import TimedOutError
from ixion.clients.metadata import TopicPartition
from ixion.clients.share.face import OnAcknowledgement, ShareFace, as_ms, check_records
from ixion.clients.share.record import ShareRecord
from ixion.clients.share.settings import ShareConsumerOptions
from ixion.language.model.errors import KafkaError

FOREVER_S = 1e9


class AcknowledgementFuture(Acknowledgement):
    """The acknowledgement of one record on its way."""

    def __init__(self, record: ShareRecord, kind: int, engine: Engine, machine: ShareMachine) -> None:
        super().__init__(TopicPartition(record.topic, record.partition), record.offset, kind)
        self._engine = engine
        self._machine = machine

    def done(self) -> bool:
        return self.is_done

    def result(self, timeout_s: float | None = None) -> None:
        """Wait until the broker has stored it; raises its error. TimedOutError if neither is known in time."""
        error = self.exception(timeout_s)
        if error is not None:
            raise error

    def exception(self, timeout_s: float | None = None) -> KafkaError | None:
        """Wait likewise, and return the error."""
        engine = self._engine
        with engine.lock:
            if not self.is_done:
                now_s = time.monotonic()
                self._machine.hurry(now_s)
                try:
                    engine.pump(now_s)
                    engine.wait(lambda: self.is_done, now_s + (FOREVER_S if timeout_s is None else timeout_s))
                finally:
                    self._machine.relax()
            if not self.is_done:
                raise TimedOutError(f"the broker did not answer the {self.name} of {self.place} {self.offset} in time")
        return self.error


class ShareConsumer(ShareFace, Generic[K, V]):
    """Takes records from a queue, as a member of a share group; `ShareConsumerOptions` has its settings."""

    def __init__(
        self,
        bootstrap: Bootstrap = "",
        *,
        group: str = "",
        topics: Sequence[str] = (),
        on_acknowledgement: OnAcknowledgement | None = None,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        **settings: Unpack[ShareConsumerOptions],
    ) -> None:
        """`settings` are Kafka's, with underscores (`max_poll_records=1`); see `ShareConsumerOptions`.

        `on_acknowledgement` is called with the outcome of acknowledgements, within a later poll, commit or close.
        """
        self._prepare(bootstrap, group, on_acknowledgement, key_deserializer, value_deserializer, settings)
        self._guard = SingleThread()
        self._engine = Engine(self._machine, "ixion-share-consumer", do_nothing, stands_in=False)
        self._made_in = os.getpid()
        self._lock = self._engine.lock
        if topics:
            with self._undone_on_error():
                self.subscribe(topics)

    # Made from aio/share.py by devtools.blocking, from here on …

    def __enter__(self) -> ShareConsumer[K, V]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close. After an exception nothing is accepted implicitly: the last record may be the cause."""
        if not self._closed:
            self._close(30.0, accepts=kind is None)

    def subscribe(self, topics: Sequence[str]) -> None:
        """Read these topics, with the other members of the group. Replaces the previous subscription."""
        with self._entered(), self._lock:
            self._subscribe(topics)

    def unsubscribe(self) -> None:
        """Leave the group. Records that were returned can still be acknowledged, while their locks last."""
        with self._entered(), self._lock:
            machine = self._machine
            machine.unsubscribe(time.monotonic())
            self._engine.wait(lambda: not machine.member.is_leaving, time.monotonic() + self._timeout_s)

    # Records

    def poll(self, timeout_s: float = 0.0, max_records: int | None = None) -> list[ShareRecord[K, V]]:
        """Records that arrive within `timeout_s`, each locked for this consumer. With implicit acknowledgement, all
        that were returned before are accepted."""
        most = self._settings.max_poll_records if max_records is None else max_records
        with self._entered():
            return self._made(self._wait_for(timeout_s, most, most))

    def __iter__(self) -> Iterator[ShareRecord[K, V]]:
        """Records one by one, for ever. With implicit acknowledgement, each is accepted when the next is asked for."""
        most = self._settings.max_poll_records
        while True:
            with self._entered():
                found = self._made(self._take_one() or self._wait_for(FOREVER_S, most, 1))
            yield from found

    # Acknowledgements

    def accept(self, record: ShareRecord[K, V]) -> AcknowledgementFuture:
        """The record was processed: nobody gets it again."""
        return self._acknowledge(record, ACCEPT)

    def release(self, record: ShareRecord[K, V], *, delay: float | timedelta = 0) -> AcknowledgementFuture:
        """Give the record back, for this or another member. With a delay (seconds, or a timedelta) it comes back after
        that time at the earliest; a broker of Apache Kafka knows no delay and delivers it at once. A record that
        has been delivered as often as the group allows does not come back."""
        return self._acknowledge(record, RELEASE, as_ms(delay))

    def reject(self, record: ShareRecord[K, V]) -> AcknowledgementFuture:
        """The record cannot be processed by anybody: nobody gets it again."""
        return self._acknowledge(record, REJECT)

    def renew(self, record: ShareRecord[K, V]) -> AcknowledgementFuture:
        """Lock the record for another while. With `auto_renew` that happens by itself."""
        return self._acknowledge(record, RENEW)

    def commit(self, timeout_s: float | None = None) -> None:
        """Wait until brokers have stored all acknowledgements. With implicit acknowledgement, all records that were
        returned are accepted first. Raises the first error since the last commit."""
        within_s = self._timeout_s if timeout_s is None else timeout_s
        machine = self._machine
        with self._entered():
            with self._lock:
                now_s = time.monotonic()
                if machine.is_implicit:
                    machine.accept_held(now_s)
                machine.hurry(now_s)
                try:
                    is_over = lambda: self._is_woken or not machine.has_unsettled  # noqa: E731
                    self._engine.wait(is_over, now_s + within_s)
                finally:
                    machine.relax()
                if machine.has_unsettled:
                    self._check_wakeup()
                    raise TimedOutError(f"acknowledgements have no answer within {within_s:.3g} s")
                fault = machine.take_first_fault()
            self._tell()
            if fault is not None:
                raise fault

    def metrics(self) -> dict[str, int]:
        """Current counters and gauges, by Kafka's names."""
        with self._lock:
            return self._machine.metrics()

    @property
    def trouble(self) -> KafkaError | None:
        """Why no records arrive at the moment, if brokers are the reason."""
        with self._lock:
            return self._machine.trouble

    def close(self, timeout_s: float = 30.0) -> None:
        """Send what was acknowledged, release the rest, and leave the group. With implicit acknowledgement, all records
        that were returned are accepted. A second call does nothing."""
        self._close(timeout_s, accepts=True)

    # Internals

    def _take_one(self) -> list[ShareRecord]:
        """A record that is here already, without all of poll's steps."""
        if self._is_woken or self._machine.told:
            return []
        with self._lock:
            found = self._machine.take_next(time.monotonic())
            self._stirred()
            return found

    def _wait_for(self, timeout_s: float, wanted: int, most: int) -> list[ShareRecord]:
        """Up to `most` records, of fetches that bring up to `wanted`."""
        machine = self._machine
        machine.check_poll(timeout_s)
        end_s = time.monotonic() + timeout_s
        with self._lock:
            machine.enter(wanted, end_s, time.monotonic())
        try:
            while True:
                self._tell()
                with self._lock:
                    self._check_wakeup()
                    found = machine.take(most, time.monotonic())
                    if not found:
                        self._send()
                        if not self._engine.wait(self._has_news, end_s):
                            return []
                        found = machine.take(most, time.monotonic())
                        if not found and not self._is_woken:
                            machine.check()
                if found or time.monotonic() >= end_s:
                    return found
        finally:
            with self._lock:
                machine.exit(time.monotonic())
                self._stirred()

    def _has_news(self) -> bool:
        return self._is_woken or self._machine.has_news

    def _check_wakeup(self) -> None:
        if self._is_woken:
            self._is_woken = False
            raise WakeupError

    def _acknowledge(self, record: ShareRecord, kind: int, delay_ms: int = 0) -> AcknowledgementFuture:
        self._engine.check()
        if self._closed:
            raise ConsumerClosedError
        if self._engine.is_forked:
            raise ConcurrentUseError("this consumer belongs to the parent process; make a new one after a fork")
        check_records([record])
        result = AcknowledgementFuture(record, kind, self._engine, self._machine)
        with self._lock:
            self._machine.acknowledge(record, result, delay_ms, time.monotonic())
            self._stirred()
        return result

    def _close(self, timeout_s: float, *, accepts: bool) -> None:
        self._engine.check()
        with self._guard:
            if self._closed:
                return
            machine = self._machine
            try:
                with self._lock:
                    now_s = time.monotonic()
                    machine.begin_to_close(now_s, accepts)
                    self._send()  # even if there is no time to wait for the answer
                    self._engine.wait(lambda: not machine.is_closing, now_s + timeout_s)
            finally:
                self._closed = True
                with self._lock:
                    machine.close(time.monotonic())
                self._stop()
                self._tell()

    # … to here.

    def wakeup(self) -> None:
        """Interrupt the waiting call, or the next one that would wait, with WakeupError. From any thread or signal."""
        self._is_woken = True
        self._engine.ring()

    def _subscribe(self, topics: Sequence[str]) -> None:
        self._machine.subscribe(topics, time.monotonic())
        self._engine.stands_in = True
        self._engine.look_after()

    def _let_go(self) -> None:
        self._engine.abandon()

    @contextmanager
    def _inside(self) -> Iterator[None]:
        with self._entered(), self._lock:
            yield

    def _entered(self) -> SingleThread:
        if self._closed:
            raise ConsumerClosedError
        return self._guard

    def _stirred(self) -> None:
        """Let the engine's own thread notice that there may be something to send."""
        self._engine.look_after()

    def _send(self) -> None:
        """Send now what waits to be sent."""
        self._engine.pump(time.monotonic())

    def _stop(self) -> None:
        self._engine.stop()


def do_nothing() -> None:
    """Callbacks run on the caller's thread only."""
