"""Writes markers into the partitions of a transaction, on any broker.

Partitions that this broker leads are appended to here (`local_markers`); leaders on other brokers get WriteTxnMarkers.
A partition without a leader, or whose leader does not answer, gets a code on which `sending` retries.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, cast

from ixion.broker.coordinators.txn.markers import Marker, MarkerWriter, Written
from ixion.broker.coordinators.txn.snapshot import EPOCH_PER_TRANSACTION
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.replica.broker_channels import BrokerChannels
from ixion.clients.faults import error_code
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ixion.language.protocol.registry import ApiKey

logger = logging.getLogger(__name__)

OLDEST: Final = 1  # of Apache Kafka 3.9
# It says that the epoch is raised, so that a late copy of a marker cannot end the next transaction. Without it a leader
# takes the marker for one of an older transaction.version, whose epoch is that of its transaction.
NEWEST: Final = 2

Codes = dict[TopicPartition, ErrorCode]


class SpreadMarkers:
    def __init__(self, local: MarkerWriter, node_id: int, image: ClusterImage, channels: BrokerChannels) -> None:
        self._local = local
        self._node_id = node_id
        self._image = image
        self._channels = channels
        self._tasks: set[asyncio.Task[None]] = set()

    def write(self, marker: Marker, done: Written) -> None:
        codes: Codes = {}
        leaders: dict[int, set[TopicPartition]] = {}
        for key in marker.partitions:
            partition = self._image.partition(*key)
            if partition is None:
                codes[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif partition.leader < 0:
                codes[key] = ErrorCode.LEADER_NOT_AVAILABLE
            else:
                leaders.setdefault(partition.leader, set()).add(key)
        if not codes and leaders.keys() == {self._node_id}:
            self._local.write(marker, done)
            return
        gathering = Gathering(codes, len(leaders), done)
        for leader, keys in leaders.items():
            part = replace(marker, partitions=frozenset(keys))
            if leader == self._node_id:
                self._local.write(part, gathering.add)
            else:
                task = asyncio.get_running_loop().create_task(self._send(leader, part, gathering))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _send(self, leader: int, marker: Marker, gathering: Gathering) -> None:
        request = WriteTxnMarkersRequest(markers=(wire_marker(marker),))
        codes: Codes = dict.fromkeys(marker.partitions, ErrorCode.LEADER_NOT_AVAILABLE)
        try:
            asked = self._channels.ask(leader, ApiKey.WRITE_TXN_MARKERS, request, oldest=OLDEST, newest=NEWEST)
            answer = cast(WriteTxnMarkersResponse, await asked)
        except KafkaError as error:
            logger.info("markers of producer %d are sent to broker %d again: %s", marker.producer_id, leader, error)
        except Exception:  # such as an unreadable certificate: without an answer `sending` would not retry
            logger.exception("markers of producer %d are sent to broker %d again", marker.producer_id, leader)
        else:
            for result in answer.markers:
                for topic in result.topics:
                    for each in topic.partitions:
                        codes[topic.name, each.partition_index] = error_code(each.error_code)
        gathering.add({key: codes[key] for key in marker.partitions})


class Gathering:
    """The codes of several writers, until the last has answered."""

    def __init__(self, codes: Codes, left: int, done: Written) -> None:
        self._codes = codes
        self._left = left
        self._done = done
        if not left:
            done(codes)

    def add(self, codes: Codes) -> None:
        self._codes |= codes
        self._left -= 1
        if not self._left:
            self._done(self._codes)


def wire_marker(marker: Marker) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.epoch,
        transaction_result=marker.commit,
        topics=tuple(
            WritableTxnMarkerTopic(name=name, partition_indexes=numbers) for name, numbers in grouped(marker.partitions)
        ),
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=EPOCH_PER_TRANSACTION if marker.raised else 0,
    )


def grouped(keys: Iterable[TopicPartition]) -> list[tuple[str, tuple[int, ...]]]:
    topics: dict[str, list[int]] = {}
    for name, number in sorted(keys):
        topics.setdefault(name, []).append(number)
    return [(name, tuple(numbers)) for name, numbers in topics.items()]
