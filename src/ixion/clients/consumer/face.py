"""The calls of a consumer that wait for nothing: the same for the blocking face and for that of asyncio."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from ixion.clients.address import Bootstrap, parse_bootstrap
from ixion.clients.clock import wall_clock_ms
from ixion.clients.consumer.batch import ColumnBatch
from ixion.clients.consumer.decoding import Decoding
from ixion.clients.consumer.listener import RebalanceListener
from ixion.clients.consumer.settings import read_settings
from ixion.clients.core.consumer.errors import ConsumerUseError
from ixion.clients.core.consumer.machine import ConsumerMachine
from ixion.clients.engine import random
from ixion.clients.log import warn_unclosed
from ixion.clients.metadata import TopicPartition
from ixion.clients.security import split_security

if TYPE_CHECKING:
    from ixion.clients.core.producer.group_offsets import GroupMetadata


class ConsumerFace:
    _decoding: Decoding
    _closed = False
    _made_in = 0  # the process, once it is made
    _is_in_listener = False
    _is_woken = False  # the waiting call, or the next one, is to be interrupted

    def _prepare(self, bootstrap: Bootstrap, group: str | None, settings: Mapping[str, Any]) -> None:
        """Build the parts that both faces share. TypeError or ValueError, naming it, for a wrong setting or address."""
        security, others = split_security(settings)
        self._settings = read_settings(others)
        self._timeout_s = self._settings.default_api_timeout_ms / 1000
        self._listener = RebalanceListener()
        self._machine = ConsumerMachine(
            parse_bootstrap(bootstrap),
            group,
            self._settings,
            random,
            time.monotonic(),
            security=security,
            wall_ms=wall_clock_ms,
        )
        self._machine.client.warns = True

    def __del__(self) -> None:
        """A consumer that is dropped without close() stops, without leaving its group. Copies in a forked child, and
        consumers left at the end of the program, are ignored."""
        if not self._closed and self._made_in == os.getpid() and not sys.is_finalizing():
            self._closed = True
            self._let_go()
            group = self._machine.group
            warn_unclosed(self, "consumer", "" if group is None else ": its group waits until its session times out")

    def _let_go(self) -> None:
        """Stop the engine, from any thread."""
        raise NotImplementedError

    @contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        """Stop the engine if the constructor fails: the caller gets no consumer to close."""
        try:
            yield
        except BaseException:
            self._closed = True
            self._let_go()
            raise

    def _check_listener(self) -> None:
        """ConsumerUseError within a rebalance listener, which poll would call again."""
        if self._is_in_listener:
            raise ConsumerUseError("a rebalance listener cannot poll")

    def _inside(self) -> AbstractContextManager[object]:
        """Admits one caller of an open consumer; the machine does not run meanwhile."""
        raise NotImplementedError

    def _stirred(self) -> None:
        """Let the engine run: there may be something to send."""

    def assignment(self) -> list[TopicPartition]:
        with self._inside():
            return self._machine.subscription.partitions

    def subscription(self) -> list[str]:
        """The topics that are subscribed to, or that match the pattern."""
        with self._inside():
            group = self._machine.group
            return [] if group is None else sorted(group.member.topics)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return and fetch nothing of these until they are resumed."""
        with self._inside():
            for partition in partitions:
                self._machine.subscription.pause(partition)

    def resume(self, *partitions: TopicPartition) -> None:
        with self._inside():
            for partition in partitions:
                self._machine.subscription.resume(partition)
            self._stirred()

    def paused(self) -> list[TopicPartition]:
        with self._inside():
            subscription = self._machine.subscription
            return [each for each in subscription.partitions if subscription.is_paused(each)]

    def group_metadata(self) -> GroupMetadata:
        """What a transactional producer needs to commit offsets for this consumer (`Producer.send_offsets`)."""
        with self._inside():
            return self._machine.group_metadata()

    def _next_columns(self) -> list[ColumnBatch]:
        found = self._machine.buffer.take_columns()
        return [] if found is None else [ColumnBatch(*found)]

    def _tell(self) -> None:
        """Run interceptors and callbacks of finished commits."""
        told = self._machine.told
        while told:
            commit = told.popleft()
            if commit.fault is None:
                self._decoding.committed({place: each.offset for place, each in commit.offsets.items()})
            if commit.on_commit is not None:
                commit.on_commit(commit.offsets, commit.fault)
