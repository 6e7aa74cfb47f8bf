"""Markers: the control batches that end a transaction, one per partition, and the interface to write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    producer_id: int
    epoch: int
    commit: bool
    coordinator_epoch: int  # leader epoch of the partition of __transaction_state; a partition refuses older ones
    partitions: frozenset[TopicPartition]
    raised: bool = False  # the epoch is above that of the transaction's records: transaction.version 2


Written = Callable[[dict[TopicPartition, ErrorCode]], None]


class MarkerWriter(Protocol):
    def write(self, marker: Marker, done: Written) -> None:
        """Append to every partition, with acks=all. `done` is called once, perhaps at once, with a code for each."""
