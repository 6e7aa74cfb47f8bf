"""Reads the notes about delayed records of a partition from its leader, by Fetch, under the name of the sibling.

The sibling is no topic, so it is asked for by name: the versions of Fetch before topic ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ixion.clients.cluster import Cluster
from ixion.clients.deadline import Deadline
from ixion.delay.note import Note, read_note
from ixion.model.delay_names import sibling_of
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.codec.sink import joined
from ixion.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ixion.protocol.registry import ApiKey
from ixion.records.batches import iter_complete_batches

OLDEST: Final = 5  # the first with the log start in its answers
NEWEST: Final = 12  # the last with names
PIECE: Final = 4 << 20


def read_notes(cluster: Cluster, topic: str, number: int) -> Iterator[Note]:
    """All notes of a partition, from the first; none if it never had delayed records."""
    leader = {part.number: part.leader for part in cluster.topic(topic).partitions}[number]
    offset = 0
    while True:
        deadline = cluster.deadline()
        found = fetch(cluster, leader, sibling_of(topic), number, offset, deadline)
        code = ErrorCode(found.error_code)
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and offset < found.log_start_offset:
            offset = found.log_start_offset
            continue
        if code != ErrorCode.NONE:
            raise KafkaError(code, f"the delayed records of {topic}-{number}: {code.explanation}")
        before = offset
        for view in iter_complete_batches(joined([found.records]) if found.records is not None else b""):
            if view.last_offset >= offset:
                yield read_note(view)
                offset = int(view.last_offset) + 1
        if offset == before:
            return


def fetch(cluster: Cluster, leader: int, name: str, number: int, offset: int, deadline: Deadline) -> PartitionData:
    broker = cluster.node(leader, deadline)
    wanted = FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=PIECE)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=PIECE, topics=(FetchTopic(topic=name, partitions=(wanted,)),)
    )
    version = broker.version(ApiKey.FETCH, oldest=OLDEST, newest=NEWEST)
    answer = broker.call(ApiKey.FETCH, request, FetchResponse, deadline, version)
    return answer.responses[0].partitions[0]
