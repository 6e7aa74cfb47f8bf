"""Hostile requests about queues: ranges of all offsets there are, and forty thousand of everything.

A state is written by brokers only, but on a broker without rights any client may pretend to be one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ixion.language.protocol.messages import k76_share_group_heartbeat as k76
from ixion.language.protocol.messages import k78_share_fetch as k78
from ixion.language.protocol.messages import k79_share_acknowledge as k79
from ixion.language.protocol.messages import k83_initialize_share_group_state as k83
from ixion.language.protocol.messages import k85_write_share_group_state as k85
from ixion.language.protocol.messages import k91_alter_share_group_offsets as k91
from ixion.language.protocol.notation import Struct
from tests.hostile.inputs import FLOOD_MB, Input, Take, asked, of_many

MANY = 40_000
LAST = 2**63 - 1
LARGE = 2**31 - 1
MEMBER = "m" * 22
UNKNOWN = bytes(range(16))
EVERYTHING = k79.AcknowledgementBatch(first_offset=0, last_offset=LAST, acknowledge_types=(1,))
OF_MANY_TYPES = k79.AcknowledgementBatch(first_offset=0, last_offset=199_999, acknowledge_types=(1,) * 200_000)
ONE_BY_ONE = of_many(
    MANY, lambda n: k79.AcknowledgementBatch(first_offset=2 * n, last_offset=2 * n, acknowledge_types=(2,))
)


def share_fetch(epoch: int, topics: tuple[k78.FetchTopic, ...]) -> k78.ShareFetchRequest:
    return k78.ShareFetchRequest(
        group_id="hostile",
        member_id=MEMBER,
        share_session_epoch=epoch,
        max_wait_ms=0,
        min_bytes=-1,
        max_records=2**31 - 1,
        batch_size=-1,
        topics=topics,
        forgotten_topics_data=(),
    )


def acknowledge(*batches: k79.AcknowledgementBatch) -> k79.ShareAcknowledgeRequest:
    part = k79.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
    topic = k79.AcknowledgeTopic(topic_id=UNKNOWN, partitions=(part,))
    return k79.ShareAcknowledgeRequest(group_id="hostile", member_id=MEMBER, share_session_epoch=1, topics=(topic,))


def write_state(*batches: k85.StateBatch) -> k85.WriteShareGroupStateRequest:
    part = k85.PartitionData(
        partition=0, state_epoch=LARGE, leader_epoch=LARGE, start_offset=LAST, state_batches=batches
    )
    return k85.WriteShareGroupStateRequest(
        group_id="hostile", topics=(k85.WriteStateData(topic_id=UNKNOWN, partitions=(part,)),)
    )


def beat(**fields: object) -> k76.ShareGroupHeartbeatRequest:
    made = k76.ShareGroupHeartbeatRequest(group_id="hostile", member_id=MEMBER, member_epoch=0)
    changed: k76.ShareGroupHeartbeatRequest = made.replace(**fields)
    return changed


def given() -> Iterator[tuple[str, int, int, Struct]]:
    """A name, the API and its version, and the request."""
    many_names = of_many(MANY, lambda n: f"t{n}")
    yield "a queue of forty thousand topics", 76, 1, beat(subscribed_topic_names=many_names)
    yield "a queue with a long name", 76, 1, beat(group_id="g" * 30_000, subscribed_topic_names=("t",))
    partitions = of_many(MANY, lambda n: k78.FetchPartition(partition_index=n, acknowledgement_batches=()))
    wide = share_fetch(0, (k78.FetchTopic(topic_id=UNKNOWN, partitions=partitions),))
    yield "a share session of forty thousand partitions", 78, 2, wide
    yield "a share session at its last epoch", 78, 2, share_fetch(LARGE, ())
    yield "all offsets there are are accepted", 79, 2, acknowledge(EVERYTHING)
    yield "two hundred thousand types for a range", 79, 2, acknowledge(OF_MANY_TYPES)
    yield "forty thousand single releases", 79, 2, acknowledge(*ONE_BY_ONE)
    new_states = of_many(MANY, lambda n: k83.PartitionData(partition=n, state_epoch=LARGE, start_offset=LAST))
    data = k83.InitializeStateData(topic_id=UNKNOWN, partitions=new_states)
    yield (
        "states of forty thousand partitions",
        83,
        0,
        k83.InitializeShareGroupStateRequest(group_id="hostile", topics=(data,)),
    )
    all_of_it = k85.StateBatch(first_offset=0, last_offset=LAST, delivery_state=4, delivery_count=2**15 - 1)
    yield "a state of all offsets there are", 85, 1, write_state(all_of_it)
    backwards = k85.StateBatch(first_offset=LAST, last_offset=-LAST, delivery_state=-1, delivery_count=-1)
    yield "a state that goes backwards", 85, 1, write_state(backwards)
    starts = of_many(MANY, lambda n: k91.AlterShareGroupOffsetsRequestPartition(partition_index=n, start_offset=LAST))
    topic = k91.AlterShareGroupOffsetsRequestTopic(topic_name="hostile", partitions=starts)
    yield (
        "new starts of forty thousand partitions",
        91,
        0,
        k91.AlterShareGroupOffsetsRequest(group_id="hostile", topics=(topic,)),
    )


def input_of(name: str, key: int, version: int, body: Struct) -> Input:
    return Input(name, Take.BEAR, lambda: asked(key, version, body), cost_mb=FLOOD_MB)


def queues() -> list[Input]:
    return [input_of(*each) for each in given()]
