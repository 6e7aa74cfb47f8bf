"""Schedule topics: their records stay where they are, and are delivered to the same partition of another topic.

For readers that cannot handle holes (delivery.delay.target): the target has none, and no consumer reads the schedule
topic. A record waits as in any topic with delivery.delay.mode=record. Another broker may lead the target, so a delivery
is a produce by an idempotent producer whose state is in the sibling (`sender`):

1. a note says which records are sent, with which producer id and first sequence number (SENDS);
2. when every in-sync replica of the schedule topic has that note, they are produced to the target's leader, acks=all,
   with `x-schedule-topic` beside the other headers of a delivery;
3. when that is acknowledged, a note says that they were delivered, with the end offset of the target.

With each note an empty batch is appended to the schedule topic: the note is about that batch.

**A leader that is killed, deposed or cut off in between** leaves a SENDS without the note that follows. The next leader
sends the same records with the same sequence numbers, and the target's leader recognises duplicates. Only records of a
committed SENDS are ever sent, so an old leader that does not know yet that it was deposed can send nothing else. After
that each leader takes a new producer id: if the power fails and notes are lost, no sequence number is used for other
records.

    the schedule's leader is lost       the next leader finds
    before SENDS is committed           nothing, or SENDS: it sends them; the old leader has not
    before or after the produce         SENDS: it sends them again; the target has them once
    after the note that follows         the records are delivered

The target forgets a producer after producer.id.expiration.ms. So before records are sent again, the target is searched
for their batch, from its end offset at the last delivery on.
"""

from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.schedule_headers import Wish
from ixion.language.records.validate import InvalidRecords, RecordError, why_refused

DELIVERER = -2  # the producer id in batches of delivered records; no client can write it


def check_all_wait(batch: BatchView, wishes: list[Wish], keyless: list[int]) -> None:
    """Refuse records without a due time, and recurring ones: no consumer would see them in a schedule topic.

    `keyless`: records without a key, if the target is compacted.
    """
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
    if keyless:
        cancels = {int(wish.index) for wish in wishes if wish.cancel}
        refused += [
            RecordError(batch_index=index, message="delivery.delay.target is compacted, so each record needs a key")
            for index in keyless
            if index not in cancels
        ]
    if refused:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, why_refused(refused), tuple(refused[:100]))


def empty_batch(count: int, leader_epoch: int) -> bytes:
    """The batch in the schedule topic that stands for `count` records delivered to the target."""
    builder = BatchBuilder(producer_id=DELIVERER, leader_epoch=leader_epoch)
    builder.last_offset = count - 1
    return builder.build()
