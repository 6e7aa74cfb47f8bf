"""Which offsets have expired.

The clock of an offset starts when no member needs it any more:

| group                                   | offsets.retention.minutes count from                             |
|-----------------------------------------|------------------------------------------------------------------|
| empty                                   | the group became empty, or the commit if that was later          |
| consumers, stable; consumer, streams    | the commit, and only for topics that no member reads any more    |
| never had members                       | the commit                                                       |
| anything else                           | never                                                            |

(For an empty group Kafka looks only at the time when it became empty. So an offset that an administrator has just set
may be gone at the next check.)

An old client may have set a retention for an offset; then that one counts.
"""

from __future__ import annotations

from ixion.broker.coordinators.group.classic.group import CONSUMER
from ixion.broker.coordinators.group.classic.states import EMPTY, STABLE
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.offsets import NO_EXPIRY, Committed, GroupOffsets
from ixion.broker.coordinators.group.shard import Group
from ixion.broker.coordinators.group.share.group import ShareGroup
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.language.model.topic_partition import TopicPartition


def expired(group: Group, offsets: GroupOffsets, now_ms: int, retention_ms: int) -> list[TopicPartition]:
    if isinstance(group, ShareGroup):
        return []  # it has none
    if isinstance(group, ConsumerGroup | StreamsGroup):
        return [
            partition
            for partition, committed in offsets.committed.items()
            if not (group.members and group.reads(partition[0]))
            and _is_old(committed, -1, now_ms, retention_ms)
            and not offsets.is_pending(partition)
        ]
    if group.state is not EMPTY and (group.state is not STABLE or group.protocol_type != CONSUMER):
        return []
    empty_since_ms = group.state_since_ms if group.protocol_type is not None and group.state is EMPTY else -1
    return [
        partition
        for partition, committed in offsets.committed.items()
        if (group.state is EMPTY or not group.reads(partition[0]))
        and _is_old(committed, empty_since_ms, now_ms, retention_ms)
        and not offsets.is_pending(partition)
    ]


def _is_old(committed: Committed, empty_since_ms: int, now_ms: int, retention_ms: int) -> bool:
    if committed.expire_ms != NO_EXPIRY:
        return now_ms >= committed.expire_ms
    return now_ms - max(committed.commit_ms, empty_since_ms) >= retention_ms
