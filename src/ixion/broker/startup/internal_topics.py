"""The internal topics of the coordinators, created when they are first needed.

In a cluster they are created once as many brokers are alive as offsets.topic.replication.factor,
transaction.state.log.replication.factor or share.coordinator.state.topic.replication.factor ask for, as in Kafka:
created sooner, they would have too few replicas for good. A broker that is alone can never have more, so it creates
them with one replica, whatever these settings say.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ixion.broker.controller.planning import NewTopic
from ixion.broker.replica.internal_topic import GROUP_OFFSETS, SHARE_STATE, TRANSACTION_STATE, InternalTopic
from ixion.broker.startup.placement import RULES
from ixion.broker.startup.topic_creation import create_topics
from ixion.config import group_settings as group
from ixion.config import share_settings as share
from ixion.config import transaction_settings as txn
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.placement import partition_of

if TYPE_CHECKING:
    from ixion.broker.startup.parts import Parts
    from ixion.config.setting import Setting

logger = logging.getLogger(__name__)

PARTITIONS: Final = {
    GROUP_OFFSETS: group.OFFSETS_TOPIC_NUM_PARTITIONS,
    TRANSACTION_STATE: txn.TRANSACTION_STATE_LOG_NUM_PARTITIONS,
    SHARE_STATE: share.SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS,
}


def make_internal_topics(parts: Parts) -> dict[str, InternalTopic]:
    image = parts.image
    complaints: dict[str, str] = {}  # the last logged fault by topic: clients retry, and each fault is logged once

    def replication(name: str, setting: Setting[int]) -> int:
        """KafkaError if too few brokers are alive."""
        factor: int = parts.config.current[setting]
        if parts.engine is not None:
            return 1
        if len(image.brokers) >= factor:
            complaints.pop(name, None)
            return factor
        fault = f"{name} cannot be created: {len(image.brokers)} brokers are alive, {setting.name} is {factor}"
        if complaints.get(name) != fault:
            complaints[name] = fault
            logger.error("%s", fault)
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, fault)

    def offsets_wanted() -> NewTopic:
        config = parts.config.current
        return NewTopic(
            name=GROUP_OFFSETS,
            partitions=config[PARTITIONS[GROUP_OFFSETS]],
            replication=replication(GROUP_OFFSETS, group.OFFSETS_TOPIC_REPLICATION_FACTOR),
            config={
                "cleanup.policy": "compact",
                "segment.bytes": str(config[group.OFFSETS_TOPIC_SEGMENT_BYTES]),
                "compression.type": "producer",
            },
        )

    def transactions_wanted() -> NewTopic:
        config = parts.config.current
        copies = replication(TRANSACTION_STATE, txn.TRANSACTION_STATE_LOG_REPLICATION_FACTOR)
        return NewTopic(
            name=TRANSACTION_STATE,
            partitions=config[PARTITIONS[TRANSACTION_STATE]],
            replication=copies,
            config={
                "cleanup.policy": "compact",
                "segment.bytes": str(config[txn.TRANSACTION_STATE_LOG_SEGMENT_BYTES]),
                "compression.type": "uncompressed",
                "unclean.leader.election.enable": "false",
                "min.insync.replicas": str(min(config[txn.TRANSACTION_STATE_LOG_MIN_ISR], copies)),
            },
        )

    def shares_wanted() -> NewTopic:
        config = parts.config.current
        copies = replication(SHARE_STATE, share.SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR)
        return NewTopic(
            name=SHARE_STATE,
            partitions=config[PARTITIONS[SHARE_STATE]],
            replication=copies,
            config={
                "cleanup.policy": "delete",
                "retention.ms": "-1",
                "segment.bytes": str(config[share.SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES]),
                "compression.type": "producer",
                "min.insync.replicas": str(min(config[share.SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR], copies)),
            },
        )

    wanted = {GROUP_OFFSETS: offsets_wanted, TRANSACTION_STATE: transactions_wanted, SHARE_STATE: shares_wanted}

    async def create(name: str) -> None:
        if name in image.topics:
            return
        if name == GROUP_OFFSETS:
            await parts.loop.run_in_executor(parts.scheduler.workers, parts.groups.import_code)
        (outcome,) = await create_topics(parts, [wanted[name]()])
        if outcome.code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise KafkaError(outcome.code, outcome.message or "")

    def count_of(name: str) -> int:
        topic = image.topics.get(name)
        return len(topic.partitions) if topic is not None else parts.config.current[PARTITIONS[name]]

    def make(name: str) -> InternalTopic:
        return InternalTopic(
            name,
            parts.replicas,
            partition_count=lambda: count_of(name),
            create=create,
            partition_of=partition_of if name == SHARE_STATE else RULES[parts.placement],
        )

    return {name: make(name) for name in wanted}
