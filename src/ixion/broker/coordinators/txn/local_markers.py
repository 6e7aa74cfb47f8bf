"""Writes markers into partitions that this broker leads, and notifies its group coordinator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ixion.broker.coordinators.txn.markers import Marker, Written
from ixion.broker.log.prepare import Origin
from ixion.broker.replica.internal_topic import GROUP_OFFSETS
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.results import AppendResult
from ixion.language.records.control import transaction_marker

TIMEOUT_MS: Final = 30_000  # how long acks=all may take before a retry, as request.timeout.ms

# Called with the partition of __consumer_offsets, the producer id and whether the transaction committed.
OffsetsDecided = Callable[[int, int, bool], None]


class LocalMarkers:
    def __init__(self, replicas: ReplicaManager, clock_ms: Callable[[], int], offsets_decided: OffsetsDecided) -> None:
        self._replicas = replicas
        self._clock_ms = clock_ms
        self._offsets_decided = offsets_decided

    def write(self, marker: Marker, done: Written) -> None:
        batch = transaction_marker(
            commit=marker.commit,
            producer_id=marker.producer_id,
            producer_epoch=marker.epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=self._clock_ms(),
        )

        def appended(results: list[AppendResult]) -> None:
            for result in results:
                if result.topic == GROUP_OFFSETS and not result.code:
                    self._offsets_decided(result.number, marker.producer_id, marker.commit)
            done({(result.topic, result.number): result.code for result in results})

        entries = [(topic, number, batch) for topic, number in sorted(marker.partitions)]
        origin = Origin.RAISED_MARKER if marker.raised else Origin.COORDINATOR
        self._replicas.append(TIMEOUT_MS, -1, origin, entries, appended)
