"""Reads the notes about delayed records of a partition from its leader, by Fetch, under the name of the sibling.

The sibling is not a topic and has no topic id, so it is fetched by name, with versions before topic ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ixion.broker.schedules.note import Note, read_note
from ixion.clients.admin.plan import Call, Plan
from ixion.clients.admin.routes import leader_in, one
from ixion.clients.admin.runner import AdminRunner
from ixion.clients.admin.starts import find_topic
from ixion.clients.metadata import TopicPartition
from ixion.language.model.delay_names import sibling_of
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.codec.sink import joined
from ixion.language.protocol.messages.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.batches import iter_complete_batches

OLDEST: Final = 5  # the first with the log start in its answers
NEWEST: Final = 12  # the last with names
PIECE: Final = 4 << 20


def read_notes(admin: AdminRunner, topic: str, number: int) -> Iterator[Note]:
    """All notes of a partition, from the first; none if it never had delayed records."""
    offset = 0
    while True:
        found = admin.run(fetch, topic, number, offset)
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


def fetch(call: Call, topic: str, number: int, offset: int) -> Plan[PartitionData]:
    """A piece of the sibling, from the leader of the partition."""
    leader = leader_in((yield from find_topic(call, topic)), TopicPartition(topic, number))
    wanted = FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=PIECE)
    sibling = FetchTopic(topic=sibling_of(topic), partitions=(wanted,))
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=PIECE, topics=(sibling,))
    answer = yield from one(call, leader, ApiKey.FETCH, lambda _: request, FetchResponse, oldest=OLDEST, newest=NEWEST)
    return answer.responses[0].partitions[0]
