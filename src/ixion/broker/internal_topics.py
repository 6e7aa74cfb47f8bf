"""The topics that coordinators keep their state in, made when they are first needed.

Kafka wants three replicas of them, and fails on a cluster with fewer brokers. Here they get one replica per broker, up
to that number, so that a single broker has groups and transactions.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ixion.broker.topic_creation import create_topics
from ixion.config import group_settings as group
from ixion.config import transaction_settings as txn
from ixion.controller.planning import NewTopic
from ixion.model.errors import ErrorCode, KafkaError
from ixion.replica.internal_topic import GROUP_OFFSETS, TRANSACTION_STATE, InternalTopic

if TYPE_CHECKING:
    from ixion.broker.parts import Parts


def make_internal_topics(parts: Parts) -> dict[str, InternalTopic]:
    image = parts.image

    def offsets_wanted() -> NewTopic:
        config = parts.config.current
        return NewTopic(
            name=GROUP_OFFSETS,
            partitions=config[group.OFFSETS_TOPIC_NUM_PARTITIONS],
            replication=min(config[group.OFFSETS_TOPIC_REPLICATION_FACTOR], len(image.brokers)),
            config={
                "cleanup.policy": "compact",
                "segment.bytes": str(config[group.OFFSETS_TOPIC_SEGMENT_BYTES]),
                "compression.type": "producer",
            },
        )

    def transactions_wanted() -> NewTopic:
        config = parts.config.current
        replication = min(config[txn.TRANSACTION_STATE_LOG_REPLICATION_FACTOR], len(image.brokers))
        return NewTopic(
            name=TRANSACTION_STATE,
            partitions=config[txn.TRANSACTION_STATE_LOG_NUM_PARTITIONS],
            replication=replication,
            config={
                "cleanup.policy": "compact",
                "segment.bytes": str(config[txn.TRANSACTION_STATE_LOG_SEGMENT_BYTES]),
                "compression.type": "uncompressed",
                "unclean.leader.election.enable": "false",
                "min.insync.replicas": str(min(config[txn.TRANSACTION_STATE_LOG_MIN_ISR], replication)),
            },
        )

    wanted = {GROUP_OFFSETS: offsets_wanted, TRANSACTION_STATE: transactions_wanted}

    async def create(name: str) -> None:
        if name in image.topics:
            return
        if name == GROUP_OFFSETS:
            await asyncio.to_thread(parts.groups.import_code)
        (outcome,) = await create_topics(parts, [wanted[name]()])
        if outcome.code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise KafkaError(outcome.code, outcome.message or "")

    def count_of(name: str) -> int:
        topic = image.topics.get(name)
        return len(topic.partitions) if topic is not None else wanted[name]().partitions

    def make(name: str) -> InternalTopic:
        return InternalTopic(name, parts.replicas, partition_count=lambda: count_of(name), create=create)

    return {name: make(name) for name in wanted}
