"""Schedule topics: their records stay where they are, and are delivered to the same partition of another topic.

For readers that cannot live with holes (delivery.delay.target): the target has none, and the schedule topic is read by
nobody. A record waits as in any topic with delivery.delay.mode=record. When it is due:

1. it is appended to the target, with `x-schedule-topic` beside the other headers of a delivery;
2. the note that it was delivered is written to the sibling, and says where the target ended then;
3. an empty batch is appended to the schedule topic, which is what the note is about.

If the broker is killed after 1, the next start finds the record in the target, which it reads from the last such note
on. So each is delivered once. Both topics must have one replica, on the same broker: with several, the target's leader
could lose what was noted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.delay.journal import PIECE, batches
from ixion.delay.note import Note
from ixion.model.errors import ErrorCode, KafkaError
from ixion.records.batch import BatchView
from ixion.records.builder import BatchBuilder
from ixion.records.schedule_headers import FOR, OFFSET, TOPIC, Wish
from ixion.records.validate import InvalidRecords, RecordError

if TYPE_CHECKING:
    from ixion.delay.state import State
    from ixion.log.log import Log
    from ixion.replica.manager import ReplicaManager
    from ixion.replica.partition import Partition

DELIVERER = -2  # the producer id in batches of delivered records; no client can write it


def target_of(replicas: ReplicaManager, partition: Partition) -> Partition:
    """Where the records of a schedule topic are delivered. KafkaError if they cannot be."""
    name = partition.log.config.delivery_delay_target
    target = replicas.partition(name, partition.number)
    if name == partition.topic or target is None:
        reason = "there is no such partition" if target is None else "it is the topic itself"
    elif not target.leads or len(target.replicas) > 1 or len(partition.replicas) > 1:
        reason = "both must have one replica, on the same broker"
    else:
        return target
    raise KafkaError(ErrorCode.INVALID_RECORD, f"{partition.log.name} delivers to {name}-{partition.number}: {reason}")


def check_all_wait(batch: BatchView, wishes: list[Wish]) -> None:
    """A record that does not say when, or again and again, is refused: nobody would see it where it is."""
    timed = {int(wish.index) for wish in wishes if wish.is_taken}
    refused = [
        RecordError(batch_index=index, message="a record of a schedule topic needs x-deliver-after-ms or x-deliver-at")
        for index in range(int(batch.count))
        if index not in timed
    ]
    refused += [
        RecordError(batch_index=int(wish.index), message="a schedule topic has no recurring records")
        for wish in wishes
        if wish.recurs
    ]
    if refused:
        message = f"{len(refused)} records refused; the first is number {refused[0].batch_index}: {refused[0].message}"
        raise InvalidRecords(ErrorCode.INVALID_RECORD, message, tuple(refused[:100]))


def empty_batch(count: int, leader_epoch: int) -> bytes:
    """What stands in the schedule topic for so many records that were delivered elsewhere."""
    builder = BatchBuilder(producer_id=DELIVERER, leader_epoch=leader_epoch)
    builder.last_offset = count - 1
    return builder.build()


def find_in_target(state: State, target: Log, topic: str) -> None:
    """Records that were delivered before the broker was killed, and not noted."""
    for view in batches(target, max(state.target_seen, target.log_start), PIECE):
        if view.producer_id != DELIVERER:
            continue
        for record in view.records():
            facts = dict(record.headers)
            if facts.get(TOPIC.decode()) != topic.encode():
                continue
            offset, due_ms = int(facts.get(OFFSET.decode()) or -1), int(facts.get(FOR.decode()) or -1)
            if state.pending.remove(due_ms, offset):
                note: Note | None = state.journal.find(offset)
                if note is not None:
                    state.bytes -= note.size
                    state.forget_id(note)
                    state.unnoted.append(fact_of(note))


def fact_of(note: Note) -> tuple[int, int, int]:
    """As a note about deliveries has it."""
    return note.offset, note.due_ms, -note.size if note.schedule_id else note.size
