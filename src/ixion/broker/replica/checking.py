"""Checks batches before their append: short ones at once, long ones on worker threads (see `log.checked_batch`).

Loop thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ixion.broker.log.checked_batch import CheckedBatch, check_batch, check_on_loop, needs_check
from ixion.broker.replica.fair_workers import FairWorkers, Work
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.records.layout import Buffer
from ixion.language.records.validate import TopicRules

if TYPE_CHECKING:
    from ixion.broker.replica.partition import Partition

logger = logging.getLogger(__name__)

Entry = tuple[str, int, Buffer]
Checked = dict[TopicPartition, CheckedBatch]
Long = list[tuple[TopicPartition, Buffer, TopicRules]]
# Called once with all checked batches and the nanoseconds of processor time that a worker thread took.
Done = Callable[[Checked, int], None]


class Check:
    """The batches of one request: those that are checked, and those that take long."""

    def __init__(self, owner: str, done: Done) -> None:
        self.owner: Final = owner
        self.done: Final = done
        self.checked: Checked = {}
        self.long: Long = []
        self.work: Work | None = None  # on a worker thread

    def worked(self, results: Any, error: Exception | None, used_ns: int) -> None:
        self.work = None
        long, self.long = self.long, []
        if error is not None:
            logger.error("checking batches of %s failed", self.owner, exc_info=error)
        for place, (key, _, rules) in enumerate(long):
            if error is None:
                self.checked[key] = results[place]
            else:
                self.checked[key] = failed = CheckedBatch(rules)
                failed.refusal = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the batch could not be checked")
        self.done(self.checked, used_ns)


class Checking:
    def __init__(
        self, partitions: Mapping[TopicPartition, Partition], workers: FairWorkers, clock_ms: Callable[[], int]
    ) -> None:
        self._partitions = partitions
        self._workers = workers
        self._clock_ms = clock_ms

    def needed(self, topic: str, number: int, records: Buffer) -> bool:
        """Whether this batch must be checked before its append. If the append is refused anyway, it need not."""
        partition = self._partitions.get((topic, number))
        return partition is not None and partition.leads and needs_check(records, partition.log.rules)

    def check_now(self, check: Check, entry: Entry) -> None:
        """Check a batch if that is quick; otherwise it is left for `start`."""
        topic, number, records = entry
        partition = self._partitions.get((topic, number))
        if partition is None:
            return
        rules = partition.log.rules
        checked = check_on_loop(records, rules, self._clock_ms())
        if checked is not None:
            check.checked[topic, number] = checked
        else:
            check.long.append(((topic, number), records, rules))

    def start(self, check: Check) -> None:
        """Check the batches that take long. Calls `check.done`, before this returns if there are none."""
        if not check.long:
            check.done(check.checked, 0)
            return
        size = sum([len(records) for _, records, _ in check.long])
        check.work = Work(check.owner, size, partial(check_all, check.long, self._clock_ms()), check.worked)
        self._workers.submit(check.work)

    def leave(self, check: Check) -> None:
        """The client has disconnected."""
        if check.work is not None:
            self._workers.leave(check.work)


def check_all(batches: Long, now_ms: int) -> list[CheckedBatch]:
    """On a worker thread."""
    return [check_batch(records, rules, now_ms) for _, records, rules in batches]
