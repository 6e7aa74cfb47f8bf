"""Sends the markers of one transaction until every partition has its own.

Answers of a partition, and what follows:

A. NONE: it has the marker.
B. It is unknown, and the cluster has no such partition: it was deleted and needs no marker.
C. A newer coordinator, or a newer epoch of the producer, has written to the partition: sending ends for good. The newer
   one finishes.
D. Anything else (no leader, too few replicas, disk trouble, timeout): retried after a pause, without a limit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ixion.broker.coordinators.txn.markers import Marker, MarkerWriter
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.timer.timer import Timer

logger = logging.getLogger(__name__)

RETRY_MS: Final = 100
OVERTAKEN: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class MarkerSender:
    def __init__(self, writer: MarkerWriter, timer: Timer, exists: Callable[[TopicPartition], bool]) -> None:
        self._writer = writer
        self._timer = timer
        self._exists = exists

    def send(self, marker: Marker, wanted: Callable[[], bool], done: Callable[[], None]) -> None:
        """Calls `done` when all partitions have the marker. Gives up silently when it is no longer `wanted`."""

        def written(codes: dict[TopicPartition, ErrorCode]) -> None:
            left = set()
            for partition, code in codes.items():
                if code == ErrorCode.NONE:  # A
                    continue
                if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not self._exists(partition):  # B
                    continue
                if code in OVERTAKEN:  # C
                    logger.warning("marker of producer %d for %s-%d: %s", marker.producer_id, *partition, code.name)
                    return
                left.add(partition)  # D
            if left:
                rest = replace(marker, partitions=frozenset(left))
                self._timer.call_later(RETRY_MS, self.send, rest, wanted, done)
            else:
                done()

        if not wanted():
            return
        if marker.partitions:
            self._writer.write(marker, written)
        else:
            done()
