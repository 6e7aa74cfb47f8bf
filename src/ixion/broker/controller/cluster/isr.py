"""AlterPartition: leaders ask for other in-sync replicas, and the controller writes them."""

from __future__ import annotations

from collections.abc import Callable

from ixion.broker.controller.cluster import reassignment
from ixion.broker.controller.cluster.isr_rules import WantedIsr, judge
from ixion.broker.controller.cluster.leadership import Leadership
from ixion.broker.controller.cluster.partition_machine import next_epoch, refresh, write_states
from ixion.broker.controller.cluster.term import Term
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)

Outcomes = dict[tuple[bytes, int], Leadership | ErrorCode]


class IsrChanges:
    def __init__(self, active: Callable[[], Term]) -> None:
        self._active = active

    async def alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        try:
            term = self._active()
            outcomes = await term.run(lambda: alter(term, request))
        except KafkaError as error:
            return AlterPartitionResponse(error_code=error.code, topics=())
        topics = [
            ResponseTopicData(
                topic_id=topic.topic_id,
                partitions=tuple(
                    [
                        answer_of(each.partition_index, outcomes[topic.topic_id, each.partition_index])
                        for each in topic.partitions
                    ]
                ),
            )
            for topic in request.topics
        ]
        return AlterPartitionResponse(error_code=ErrorCode.NONE, topics=tuple(topics))


async def alter(term: Term, request: AlterPartitionRequest) -> Outcomes:
    cluster = term.cluster
    member = cluster.brokers.get(request.broker_id)
    if member is None or member.epoch != request.broker_epoch:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    outcomes: Outcomes = {}
    wanted: dict[TopicPartition, Leadership] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            where = (topic.topic_id, partition.partition_index)
            verdict = judged(term, request.broker_id, topic.topic_id, partition)
            outcomes[where] = verdict
            name = cluster.ids.get(topic.topic_id, "")
            key = (name, partition.partition_index)
            if isinstance(verdict, Leadership) and verdict is not cluster.leaderships[key]:
                wanted[key] = verdict
    written = await write_states(term, wanted)
    batch = term.batch()
    for key in wanted:
        where = (cluster.topics[key[0]].topic_id, key[1])
        if key in written:
            outcomes[where] = cluster.leaderships[key] = written[key]
        else:
            outcomes[where] = ErrorCode.INVALID_UPDATE_VERSION
    if written:
        batch.show(cluster.brokers, written)
    stale = [key for key in wanted if key not in written]
    await refresh(term, stale)
    # A leader with an older state than the tree waits for a LeaderAndIsr with the present one.
    stale += [
        (cluster.ids[topic_id], number)
        for (topic_id, number), outcome in outcomes.items()
        if outcome is ErrorCode.INVALID_UPDATE_VERSION and (cluster.ids[topic_id], number) not in wanted
    ]
    lives = [key for key in stale if key in cluster.leaderships and cluster.leaderships[key].leader in cluster.brokers]
    await next_epoch(term, batch, lives, "the tree had another state than the controller")
    await term.send(batch)
    for key in written:
        if reassignment.is_moving(cluster.replicas(key)):
            await reassignment.finish_if_in_sync(term, key)
    return outcomes


def judged(term: Term, sender: int, topic_id: bytes, partition: PartitionData) -> Leadership | ErrorCode:
    cluster = term.cluster
    name = cluster.ids.get(topic_id)
    if name is None or name in cluster.doomed:
        return ErrorCode.UNKNOWN_TOPIC_ID
    key = (name, partition.partition_index)
    known = cluster.leaderships.get(key)
    if known is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    members = {entry.broker_id: entry.broker_epoch for entry in partition.new_isr_with_epochs}
    wanted = WantedIsr(
        sender=sender,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        isr=members or dict.fromkeys(partition.new_isr, -1),  # version 2 has no epochs
        recovering=partition.leader_recovery_state == 1,
    )
    return judge(known, cluster.replicas(key), wanted, cluster.epochs, cluster.stopping)


def answer_of(number: int, outcome: Leadership | ErrorCode) -> ResponsePartitionData:
    if isinstance(outcome, ErrorCode):
        return ResponsePartitionData(
            partition_index=number, error_code=outcome, leader_id=0, leader_epoch=0, isr=(), partition_epoch=0
        )
    return ResponsePartitionData(
        partition_index=number,
        error_code=ErrorCode.NONE,
        leader_id=outcome.leader,
        leader_epoch=outcome.leader_epoch,
        isr=outcome.isr,
        leader_recovery_state=int(outcome.recovering),
        partition_epoch=outcome.partition_epoch,
    )
