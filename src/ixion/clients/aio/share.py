"""The share consumer on asyncio. For records, acknowledgements and settings see `ixion.clients.share.consumer`.

    async with ShareConsumer("127.0.0.1:9092", group="workers", topics=["jobs"]) as consumer:
        async for record in consumer:
            await work(record.value)        # accepted when the next one is asked for

`accept`, `release`, `reject` and `renew` wait for nothing, in any task of the loop; await what they return for the
outcome. Locks of records that are handed out are renewed in the loop meanwhile. A consumer is polled by one task at a
time; `wakeup` may be called from any thread. A poll that is cancelled loses nothing: the next one returns what came.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Generic, Unpack

from ixion.clients.address import Bootstrap
from ixion.clients.aio.engine import AioEngine
from ixion.clients.aio.guard import NoLock, SingleTask
from ixion.clients.consumer.guard import ConcurrentUseError
from ixion.clients.consumer.types import K, V
from ixion.clients.core.consumer.errors import ConsumerClosedError, WakeupError
from ixion.clients.core.share.acknowledgement import ACCEPT, REJECT, RELEASE, RENEW, Acknowledgement
from ixion.clients.core.share.machine import ShareMachine
from ixion.clients.faults import TimedOutError
from ixion.clients.metadata import TopicPartition
from ixion.clients.share.consumer import FOREVER_S
from ixion.clients.share.face import OnAcknowledgement, ShareFace, as_ms, check_records
from ixion.clients.share.record import ShareRecord
from ixion.clients.share.settings import ShareConsumerOptions
from ixion.language.model.errors import KafkaError


class AcknowledgementFuture(Acknowledgement):
    """The acknowledgement of one record on its way; await it until the broker has stored it. Its error is raised."""

    def __init__(self, record: ShareRecord, kind: int, engine: AioEngine, machine: ShareMachine) -> None:
        super().__init__(TopicPartition(record.topic, record.partition), record.offset, kind)
        self._engine = engine
        self._machine = machine

    def done(self) -> bool:
        return self.is_done

    def __await__(self) -> Generator[Any, None, None]:
        if not self.is_done:
            self._machine.hurry(time.monotonic())
            try:
                self._engine.pump()
                while not self.is_done:
                    yield from self._engine.step().__await__()
            finally:
                self._machine.relax()
        if self.error is not None:
            raise self.error


class ShareConsumer(ShareFace, Generic[K, V]):
    """Takes records from a queue, as a member of a share group, on asyncio."""

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
        """Inside a coroutine. `settings` are Kafka's, with underscores (`max_poll_records=1`).

        `on_acknowledgement` is called with the outcome of acknowledgements, within a later poll, commit or close.
        """
        self._prepare(bootstrap, group, on_acknowledgement, key_deserializer, value_deserializer, settings)
        self._guard = SingleTask()
        self._engine = AioEngine(self._machine)
        self._lock = NoLock()
        self._made_in = os.getpid()
        if topics:
            with self._undone_on_error():
                self._subscribe(topics)

    # The blocking face is made from here on (python -m devtools.blocking) …

    async def __aenter__(self) -> ShareConsumer[K, V]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Close. After an exception nothing is accepted implicitly: the last record may be the cause."""
        if not self._closed:
            await self._close(30.0, accepts=kind is None)

    async def subscribe(self, topics: Sequence[str]) -> None:
        """Read these topics, with the other members of the group. Replaces the previous subscription."""
        with self._entered(), self._lock:
            self._subscribe(topics)

    async def unsubscribe(self) -> None:
        """Leave the group. Records that were returned can still be acknowledged, while their locks last."""
        with self._entered(), self._lock:
            machine = self._machine
            machine.unsubscribe(time.monotonic())
            await self._engine.wait(lambda: not machine.member.is_leaving, time.monotonic() + self._timeout_s)

    # Records

    async def poll(self, timeout_s: float = 0.0, max_records: int | None = None) -> list[ShareRecord[K, V]]:
        """Records that arrive within `timeout_s`, each locked for this consumer. With implicit acknowledgement, all
        that were returned before are accepted."""
        most = self._settings.max_poll_records if max_records is None else max_records
        with self._entered():
            return self._made(await self._wait_for(timeout_s, most, most))

    async def __aiter__(self) -> AsyncIterator[ShareRecord[K, V]]:
        """Records one by one, for ever. With implicit acknowledgement, each is accepted when the next is asked for."""
        most = self._settings.max_poll_records
        while True:
            with self._entered():
                found = self._made(self._take_one() or await self._wait_for(FOREVER_S, most, 1))
            for record in found:
                yield record

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

    async def commit(self, timeout_s: float | None = None) -> None:
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
                    await self._engine.wait(is_over, now_s + within_s)
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

    async def close(self, timeout_s: float = 30.0) -> None:
        """Send what was acknowledged, release the rest, and leave the group. With implicit acknowledgement, all records
        that were returned are accepted. A second call does nothing."""
        await self._close(timeout_s, accepts=True)

    # Internals

    def _take_one(self) -> list[ShareRecord]:
        """A record that is here already, without all of poll's steps."""
        if self._is_woken or self._machine.told:
            return []
        with self._lock:
            found = self._machine.take_next(time.monotonic())
            self._stirred()
            return found

    async def _wait_for(self, timeout_s: float, wanted: int, most: int) -> list[ShareRecord]:
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
                        if not await self._engine.wait(self._has_news, end_s):
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

    async def _close(self, timeout_s: float, *, accepts: bool) -> None:
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
                    await self._engine.wait(lambda: not machine.is_closing, now_s + timeout_s)
            finally:
                self._closed = True
                with self._lock:
                    machine.close(time.monotonic())
                await self._stop()
                self._tell()

    # … to here.

    def wakeup(self) -> None:
        """Interrupt the call that waits, or the next one that would wait, with WakeupError. From any thread."""
        if self._is_woken:
            return  # already set: one wake-up in the loop is enough
        self._is_woken = True
        try:
            self._engine.loop.call_soon_threadsafe(self._engine.release)
        except RuntimeError:
            pass  # the loop is closed: nothing waits

    def _subscribe(self, topics: Sequence[str]) -> None:
        self._machine.subscribe(topics, time.monotonic())
        self._engine.soon()

    def _let_go(self) -> None:
        self._engine.abandon()

    def _inside(self) -> SingleTask:
        return self._entered()

    def _entered(self) -> SingleTask:
        self._engine.check()
        if self._closed:
            raise ConsumerClosedError
        return self._guard

    def _stirred(self) -> None:
        self._engine.soon()

    def _send(self) -> None:
        """Send now what waits to be sent."""
        self._engine.pump()

    async def _stop(self) -> None:
        self._engine.stop()
        self._engine.release()
        await self._engine.join()
