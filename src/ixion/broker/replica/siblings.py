"""How the sibling of a partition, where its delayed records wait (`schedules.journal`), is copied to followers.

The leader writes a note to the sibling first, and then, under the same offset, what the note is about to the partition:
a hole, delivered records or a marker. A follower keeps this order: it fetches both logs, and appends to its partition
only what its sibling *covers*: everything below an offset up to which it has every note of the leader. So each replica
can lead at any moment: for a hole in its partition it has the record, and for delivered records the note about them.
The high watermark, acks=all and the ISR need no rules of their own.

    leader      partition 0 to 69, notes at 40 and 60     a fetch of the sibling from 41 on is answered with the note at
                                                       60, "the sibling ends at 61, the partition at 70"
    follower    has the note at 60                     covered: 70
                got only a part of the notes, up to 50 covered: 51

A follower that truncates its partition truncates its sibling to the same offset at most: notes above describe records
that no longer exist.

The sibling has no topic id of its own in the tree. It is fetched by an id that is derived from its topic's. An Apache
Kafka broker as leader knows the topic id but not the derived one. It has no delayed records, so its followers copy the
partition alone.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ixion.broker.log.checked_batch import CheckedBatch
from ixion.broker.log.config import sibling_config
from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.log import Log
from ixion.broker.log.prepare import AppendInfo, Origin
from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound
from ixion.broker.replica.partition import Partition
from ixion.language.model.delay_names import sibling_id, sibling_of
from ixion.language.model.errors import KafkaError
from ixion.language.records.batches import iter_complete_batches
from ixion.language.records.layout import Buffer

if TYPE_CHECKING:
    from ixion.broker.replica.manager import ReplicaManager

logger = logging.getLogger(__name__)
PIECE: Final = 1 << 20  # bytes read at once to find a hole
SEARCHED: Final = 100_000  # offsets


class Copied:
    """Takes the appends of a partition that this broker follows and that has a sibling."""

    def __init__(self, partition: Partition, sibling: Log) -> None:
        self._partition = partition
        self._sibling = sibling

    def append(self, records: Buffer, acks: int, origin: Origin, _checked: CheckedBatch | None = None) -> AppendInfo:
        return self._partition.append(records, acks, origin)  # which raises NOT_LEADER_OR_FOLLOWER

    def flush(self, log: Log) -> None:
        """Flush the sibling, then the partition, which refers to it."""
        if not self._sibling.closed:
            self._sibling.flush()
        log.flush()

    def may_join(self, _broker_id: int) -> bool:
        return True

    def sibling_moved(self, log: Log) -> None:
        self._sibling = log


def follow_sibling(replicas: ReplicaManager, partition: Partition) -> Partition | None:
    """The sibling of a followed partition, created if its topic delays records."""
    key = (sibling_of(partition.topic), partition.number)
    if not partition.log.config.delays_records and replicas.logs.get(*key) is None:
        return None
    try:
        log = make_sibling(replicas, partition)
    except KafkaError as error:
        logger.error("delayed records of %s cannot be copied: %s", partition.log.name, error)
        return None
    sibling = Partition(log, partition.node_id, 1, 0, partition.clock_ms)
    sibling.topic_id = sibling_id(partition.topic_id)
    sibling.covers = partition
    sibling.make_follower(partition.leader_id, partition.leader_epoch, partition.isr, partition.replicas)
    partition.schedule = Copied(partition, log)
    replicas.partitions[key] = sibling
    return sibling


def make_sibling(replicas: ReplicaManager, partition: Partition) -> Log:
    """The log of the sibling, created in the directory of the partition if it is missing.

    KafkaError if it may be in a directory that is offline: an empty one would replace it.
    """
    logs, name = replicas.logs, sibling_of(partition.topic)
    known = logs.get(name, partition.number)
    if known is not None and partition.topic_id and known.topic_id not in (None, partition.topic_id):
        logs.delete(name, partition.number)  # left by a topic of the same name, deleted while this broker was down
    logs.of(*partition.key).check_none_offline()
    where = [each for each in logs.directories if each.path == partition.log.directory.path]
    return logs.create(
        name,
        partition.number,
        partition.topic_id or None,
        where[0] if where else None,
        sibling_config(partition.log.config),
    )


def end_with_notes(log: Log, sibling: Log) -> int:
    """The offset up to which a replica has its partition and all notes about it. That is the end of the partition,
    unless the power failed and the sibling has lost more: then the delayed records of some holes are missing here, and
    another replica may have them.

    At most `SEARCHED` offsets are looked at; a leader writes a note more often. Compaction makes holes, too: for a
    compacted topic, and for a log that cannot be read, the answer is the end of the partition.
    """
    offset = max(sibling.end_offset, log.log_start)
    if log.config.compact or log.end_offset - offset > SEARCHED:
        return log.end_offset
    try:
        while offset < log.end_offset:
            before = offset
            for view in iter_complete_batches(read(log, offset, PIECE, Bound.END).records):
                if view.last_offset >= before:
                    holes = int(view.last_offset_delta + 1 - view.count)
                    if holes > count_notes(sibling, int(view.base_offset), holes):
                        return int(view.base_offset)
                    offset = int(view.next_offset)
            if offset == before:
                break
    except (KafkaError, CorruptFileError) as error:
        logger.warning("the notes of %s cannot be counted: %s", log.name, error)
    return log.end_offset


def count_notes(sibling: Log, offset: int, holes: int) -> int:
    """How many notes a sibling has from `offset` on, of which it lacks the last ones. Notes below its start were
    deleted because they are no longer needed: they count as if they were there."""
    if holes == 0 or sibling.log_start > offset:
        return holes
    if offset >= sibling.end_offset:
        return 0
    return sum(
        1
        for view in iter_complete_batches(read(sibling, offset, PIECE, Bound.END).records)
        if view.base_offset >= offset
    )


def covered_part(records: Buffer, covered: int) -> Buffer:
    """The batches that lie below an offset."""
    end = 0
    for view in iter_complete_batches(records):
        if view.last_offset >= covered:
            break
        end += int(view.size_in_bytes)
    return records if end == len(records) else records[:end]
