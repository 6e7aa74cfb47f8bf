"""Writes the dead letters of one share partition (KIP-1191), one batch at a time, until none is owed.

    ARCHIVING is stored --> the letter is on all in-sync replicas of its topic --> ARCHIVED is stored

So no letter is lost: whatever fails, the record waits, and the next leader writes the letter. It may write one that
was written already: the letters come at least once. Apache Kafka archives the record whether or not its letter was
written.

A failure is repeated after a pause that doubles up to a minute, because most have to be mended by a person: the topic
is missing, or does not take dead letters. The records that wait meanwhile hold up no others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from ixion.broker.share.figures import ShareFigures
from ixion.broker.share.runs import Run
from ixion.language.model.errors import KafkaError
from ixion.timer.task import TimerTask

if TYPE_CHECKING:
    from ixion.broker.replica.partition import Partition
    from ixion.broker.share.leader import ShareLeader
    from ixion.broker.share.terms import Terms
    from ixion.timer.timer import Timer

logger = logging.getLogger(__name__)

AT_ONCE: Final = 500  # records of one batch of letters
FIRST_RETRY_MS: Final = 100
MAX_RETRY_MS: Final = 60_000

# The runs whose letters are written, and why there is no more.
Written = Callable[[list[Run], KafkaError | None], None]


class Post(Protocol):
    def send(self, partition: Partition, group: str, terms: Terms, owed: list[Run], done: Written) -> None:
        """Write letters for some of these records, the first ones, or all. `done` is called once, perhaps before this
        returns."""


class Retry(TimerTask):
    """The task on the wheel."""

    __slots__ = ("_writer",)

    def __init__(self, writer: LetterWriter) -> None:
        super().__init__(0)
        self._writer = writer

    def run(self) -> None:
        self._writer.try_again()


class LetterWriter:
    def __init__(self, leader: ShareLeader, post: Post, figures: ShareFigures, timer: Timer) -> None:
        self._leader = leader
        self._post = post
        self._figures = figures
        self._timer = timer
        self._busy = False  # a batch is under way, or a pause
        self._retry_ms = FIRST_RETRY_MS
        self._retry: Final = Retry(self)
        self._said = ""  # the last fault that was logged

    def go_on(self) -> None:
        """Write what is owed, unless that is being done."""
        leader = self._leader
        while not (self._busy or leader.closed or leader.core is None):
            owed = leader.core.without_letter(AT_ONCE)
            if not owed:
                return
            terms = leader.terms
            if not terms.dead_letters:
                leader.lettered(owed, "no dead letter wanted")
                continue
            self._busy = True
            self._post.send(leader.partition, leader.key.group, terms, owed, self._sent)

    def try_again(self) -> None:
        self._busy = False
        self.go_on()

    def stop(self) -> None:
        self._retry.cancel()

    def _sent(self, written: list[Run], fault: KafkaError | None) -> None:
        leader = self._leader
        self._figures.dead_letters += sum([run.last - run.first + 1 for run in written])
        if leader.closed:
            return  # the next leader writes them again
        if written:
            leader.lettered(written, "dead letter written")
        if fault is None:
            self._retry_ms = FIRST_RETRY_MS
            self._said = ""
            self.try_again()
            return
        self._figures.failed_letters += 1
        if fault.message != self._said:
            self._said = fault.message
            name = leader.partition.log.name
            logger.warning("dead letters of group %s for %s wait: %s", leader.key.group, name, fault.message)
        self._retry.delay_ms = self._retry_ms
        self._retry_ms = min(2 * self._retry_ms, MAX_RETRY_MS)
        self._timer.add(self._retry)
