"""Sends the requests of a controller to its own broker, which is alone, by calls.

The controller decides in topics with their partitions (`TopicImage`, `PartitionImage`). A decision is in force when the
broker has taken LeaderAndIsr, for the partitions that it leads, and UpdateMetadata, which changes the cluster image.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ixion.broker.controller.door import OwnDisks, OwnDoor
from ixion.broker.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.timer.turns import Steps, in_turns

if TYPE_CHECKING:
    from ixion.language.protocol.messages.k04_leader_and_isr import LeaderAndIsrRequest
    from ixion.language.protocol.messages.k05_stop_replica import StopReplicaRequest
    from ixion.language.protocol.messages.k06_update_metadata import UpdateMetadataBroker, UpdateMetadataRequest

logger = logging.getLogger(__name__)

Changed = Sequence[tuple[TopicImage, Sequence[PartitionImage]]]  # topics, each with partitions that are new or changed

DELETED: Final = -2  # in place of a leader or a leader epoch: the topic is deleted
INCREMENTAL: Final = 1  # types of UpdateMetadata
FULL: Final = 2


class OwnBroker:
    def __init__(self, node_id: int, image: ClusterImage, door: OwnDoor, disks: OwnDisks) -> None:
        self.node_id = node_id
        self.disks = disks
        self.door = door
        self.controller_epoch = 0  # of the controller that sends
        self._image = image

    async def begin(self, topics: Sequence[TopicImage]) -> None:
        """Send all topics of the cluster. Metadata first: coordinators look up what they have to finish."""
        everything = [(topic, topic.partitions) for topic in topics]
        await self._update(everything, FULL)
        await self.lead(everything)

    async def take(self, changed: Changed, *, is_new: bool = False) -> None:
        """Send changed partitions. Roles first: a client that sees a partition can use it."""
        await self.lead(changed, is_new=is_new)
        await self.show(changed)

    async def lead(self, changed: Changed, *, is_new: bool = False) -> None:
        """Send LeaderAndIsr for partitions that this broker leads. One that it cannot lead is logged and offline."""
        own = [(topic, [each for each in partitions if each.leader == self.node_id]) for topic, partitions in changed]
        led = [(topic, partitions) for topic, partitions in own if partitions]
        if not led:
            return
        answer = await self.door.leader_and_isr(await in_turns(self._leader_and_isr(led, is_new)))
        check(answer.error_code)
        names = {topic.topic_id: topic.name for topic, _ in led}
        for of_topic in answer.topics:
            for error in of_topic.partition_errors:
                if error.error_code not in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR):  # that one is logged
                    code = ErrorCode(error.error_code).name
                    logger.error("%s-%d stays offline: %s", names[of_topic.topic_id], error.partition_index, code)

    async def show(self, changed: Changed) -> None:
        await self._update(changed, INCREMENTAL)

    async def _update(self, changed: Changed, kind: int) -> None:
        request = await in_turns(self._update_metadata(changed, kind))
        check((await self.door.update_metadata(request)).error_code)

    async def forget(self, topics: Sequence[TopicImage]) -> None:
        """Remove deleted topics from the metadata, then delete their logs."""
        gone = [(topic, [without_leader(each) for each in topic.partitions]) for topic in topics]
        await self._update(gone, INCREMENTAL)
        await self.delete_logs(topics)

    async def delete_logs(self, topics: Sequence[TopicImage]) -> None:
        """Delete the logs of topics. A log that cannot be deleted is logged."""
        if topics:
            check((await self.door.stop_replica(await in_turns(self._stop_replica(topics)))).error_code)

    # The requests.

    @property
    def _broker_epoch(self) -> int:
        return self._image.brokers[self.node_id].epoch

    def _leader_and_isr(self, changed: Changed, is_new: bool) -> Steps[LeaderAndIsrRequest]:
        from ixion.language.protocol.messages.k04_leader_and_isr import (
            LeaderAndIsrPartitionState,
            LeaderAndIsrRequest,
            LeaderAndIsrTopicState,
        )

        topics = []
        for topic, partitions in changed:
            states = []
            for each in partitions:
                yield
                states.append(
                    LeaderAndIsrPartitionState(
                        partition_index=each.number,
                        controller_epoch=self.controller_epoch,
                        leader=each.leader,
                        leader_epoch=each.leader_epoch,
                        isr=each.isr,
                        partition_epoch=each.partition_epoch,
                        replicas=each.replicas,
                        is_new=is_new,
                    )
                )
            topics.append(
                LeaderAndIsrTopicState(topic_name=topic.name, topic_id=topic.topic_id, partition_states=tuple(states))
            )
        return LeaderAndIsrRequest(
            controller_id=self.node_id,
            controller_epoch=self.controller_epoch,
            broker_epoch=self._broker_epoch,
            type=0,
            topic_states=tuple(topics),
            live_leaders=(),  # this broker leads them all
        )

    def _update_metadata(self, changed: Changed, kind: int) -> Steps[UpdateMetadataRequest]:
        from ixion.language.protocol.messages.k06_update_metadata import (
            UpdateMetadataPartitionState,
            UpdateMetadataRequest,
            UpdateMetadataTopicState,
        )

        topics = []
        for topic, partitions in changed:
            states = []
            for each in partitions:
                yield
                states.append(
                    UpdateMetadataPartitionState(
                        partition_index=each.number,
                        controller_epoch=self.controller_epoch,
                        leader=each.leader,
                        leader_epoch=each.leader_epoch,
                        isr=each.isr,
                        zk_version=each.partition_epoch,
                        replicas=each.replicas,
                        offline_replicas=each.offline,
                    )
                )
            topics.append(
                UpdateMetadataTopicState(topic_name=topic.name, topic_id=topic.topic_id, partition_states=tuple(states))
            )
        return UpdateMetadataRequest(
            controller_id=self.node_id,
            type=kind,
            controller_epoch=self.controller_epoch,
            broker_epoch=self._broker_epoch,
            topic_states=tuple(topics),
            live_brokers=tuple([broker_entry(each) for each in self._image.brokers.values()]),
        )

    def _stop_replica(self, topics: Iterable[TopicImage]) -> Steps[StopReplicaRequest]:
        from ixion.language.protocol.messages.k05_stop_replica import (
            StopReplicaPartitionState,
            StopReplicaRequest,
            StopReplicaTopicState,
        )

        stopped = []
        for topic in topics:
            states = []
            for each in topic.partitions:
                yield
                states.append(
                    StopReplicaPartitionState(partition_index=each.number, leader_epoch=DELETED, delete_partition=True)
                )
            stopped.append(StopReplicaTopicState(topic_name=topic.name, partition_states=tuple(states)))
        return StopReplicaRequest(
            controller_id=self.node_id,
            controller_epoch=self.controller_epoch,
            broker_epoch=self._broker_epoch,
            topic_states=tuple(stopped),
        )


def check(error_code: int) -> None:
    """KafkaError if the broker has refused a request as a whole."""
    if error_code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(error_code), "this broker refuses a request of its own controller")


def without_leader(partition: PartitionImage) -> PartitionImage:
    return PartitionImage(
        number=partition.number,
        leader=DELETED,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        replicas=partition.replicas,
    )


def broker_entry(broker: BrokerImage) -> UpdateMetadataBroker:
    from ixion.language.protocol.messages.k06_update_metadata import UpdateMetadataBroker, UpdateMetadataEndpoint

    endpoints = [
        UpdateMetadataEndpoint(port=port, host=host, listener=listener, security_protocol=0)
        for listener, (host, port) in broker.endpoints.items()
    ]
    return UpdateMetadataBroker(id=broker.broker_id, endpoints=tuple(endpoints), rack=broker.rack)
