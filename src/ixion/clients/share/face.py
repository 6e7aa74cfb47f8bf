"""What the blocking share consumer and that of asyncio have in common: all that waits for nothing."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any

from ixion.clients.address import Bootstrap, parse_bootstrap
from ixion.clients.consumer.decoding import DeserializationError, Deserializer, check_deserializers, deserialized
from ixion.clients.core.checks import MAX_I64
from ixion.clients.core.share.acknowledgement import RELEASE, Acknowledged, Acknowledgement
from ixion.clients.core.share.machine import ShareMachine
from ixion.clients.engine import random
from ixion.clients.log import warn_unclosed
from ixion.clients.metadata import TopicPartition
from ixion.clients.security import split_security
from ixion.clients.share.record import ShareRecord
from ixion.clients.share.settings import read_share_settings

OnAcknowledgement = Callable[[Acknowledged], None]


class ShareFace:
    _closed = False
    _made_in = 0  # the process, once it is made
    _is_woken = False  # the waiting call, or the next one, is to be interrupted

    def _prepare(
        self,
        bootstrap: Bootstrap,
        group: str,
        on_acknowledgement: OnAcknowledgement | None,
        key_deserializer: Deserializer | None,
        value_deserializer: Deserializer | None,
        settings: Mapping[str, Any],
    ) -> None:
        """Build the parts that both faces share. TypeError or ValueError, naming it, for a wrong setting or address."""
        security, others = split_security(settings)
        self._settings = read_share_settings(others)
        self._timeout_s = self._settings.default_api_timeout_ms / 1000
        check_deserializers(key_deserializer, value_deserializer)
        if on_acknowledgement is not None and not callable(on_acknowledgement):
            raise TypeError(f"on_acknowledgement must be a function, not {on_acknowledgement!r}")
        self._of_key = key_deserializer
        self._of_value = value_deserializer
        self._on_acknowledgement = on_acknowledgement
        addresses = parse_bootstrap(bootstrap)
        name: object = group
        if not isinstance(name, str) or not name:
            raise ValueError(f"group must be the name of a share group, not {group!r}")
        self._machine = ShareMachine(addresses, group, self._settings, random, time.monotonic(), security=security)
        self._machine.client.warns = True
        self._machine.keeps_told = on_acknowledgement is not None

    def __del__(self) -> None:
        """A consumer that is dropped without close() stops; its locks end with its connections. Copies in a forked
        child, and consumers left at the end of the program, are ignored."""
        if not self._closed and self._made_in == os.getpid() and not sys.is_finalizing():
            self._closed = True
            self._let_go()
            warn_unclosed(self, "share consumer", ": records that were not acknowledged are delivered again")

    def _let_go(self) -> None:
        """Stop the engine, from any thread."""
        raise NotImplementedError

    def _inside(self) -> AbstractContextManager[object]:
        """Admits one caller of an open consumer; the machine does not run meanwhile."""
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

    def assignment(self) -> list[TopicPartition]:
        """The partitions that this member fetches. Other members may fetch them, too."""
        with self._inside():
            return sorted(self._machine.fetcher.assigned)

    def subscription(self) -> list[str]:
        with self._inside():
            return list(self._machine.member.topics)

    def _made(self, records: list[ShareRecord]) -> list[ShareRecord]:
        """The deserialized records. If one fails, it and the later ones are put back, unless it is the first: that one
        is released, so that its delivery count decides what becomes of it."""
        if self._of_key is None and self._of_value is None:
            return records
        for at, record in enumerate(records):
            place = TopicPartition(record.topic, record.partition)
            try:
                record.made = deserialized(place, record.record, self._of_key, self._of_value)
            except DeserializationError:
                with self._inside():
                    self._machine.give_back(records[at + 1 :])
                    if at > 0:
                        self._machine.give_back([record])
                    else:
                        result = Acknowledgement(place, record.offset, RELEASE)
                        self._machine.acknowledge(record, result, 0, time.monotonic())
                if at == 0:
                    raise
                return records[:at]
        return records

    def _tell(self) -> None:
        """Call the callback for outcomes of acknowledgements."""
        told = self._machine.told
        while told:
            outcome = told.popleft()
            if self._on_acknowledgement is not None:
                self._on_acknowledgement(outcome)


def check_records(records: Sequence[object]) -> None:
    for record in records:
        if not isinstance(record, ShareRecord):
            raise TypeError(f"only a record that poll returned can be acknowledged, not {record!r}")


def as_ms(delay: float | timedelta) -> int:
    """A delay in milliseconds, rounded up: it is the least time that the record stays away."""
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"delay must be seconds or a timedelta, not {delay!r}")
    if not 0 <= seconds * 1000 <= MAX_I64:
        raise ValueError(f"delay is {delay!r}; allowed are seconds from 0 on")
    return -int(-seconds * 1000 // 1)
