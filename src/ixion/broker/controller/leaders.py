"""Changes the state of partitions: their leaders, leader epochs and in-sync replicas.

Every change is written to the tree before it is sent to the broker.
"""

from __future__ import annotations

from collections.abc import Sequence

from ixion.broker.controller.leader_rules import elect_leader, without_leader
from ixion.broker.controller.own_broker import OwnBroker
from ixion.broker.controller.queue import ChangeQueue
from ixion.broker.controller.topic_nodes import operations_to_change_state
from ixion.broker.metadata.image import ClusterImage, PartitionImage
from ixion.broker.metadata.session import MetadataSession
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.timer.turns import Steps, in_turns

Outcomes = dict[TopicPartition, ErrorCode]
Changes = list[tuple[str, PartitionImage]]  # topic and new state


class Leaders:
    def __init__(self, queue: ChangeQueue, session: MetadataSession, image: ClusterImage, own: OwnBroker) -> None:
        self._queue = queue
        self._session = session
        self._image = image
        self._own = own

    async def elect(self, keys: Sequence[TopicPartition], unclean: bool) -> Outcomes:
        """Elect preferred replicas. `unclean`: elect any live replica where there is no leader."""
        return await self._queue.run(lambda: self._elect(keys, unclean))

    async def _elect(self, keys: Sequence[TopicPartition], unclean: bool) -> Outcomes:
        outcomes, changes = await in_turns(self._decide(keys, unclean))
        await self._change(changes)
        return outcomes

    def _decide(self, keys: Sequence[TopicPartition], unclean: bool) -> Steps[tuple[Outcomes, Changes]]:
        outcomes: Outcomes = {}
        changes: Changes = []
        live = tuple(self._image.brokers)
        for name, number in keys:
            yield
            partition = self._image.partition(name, number)
            if partition is None:
                outcomes[name, number] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif partition.leader >= 0 and (unclean or partition.leader == partition.preferred):
                outcomes[name, number] = ErrorCode.ELECTION_NOT_NEEDED
            elif not unclean and (partition.preferred not in live or partition.preferred not in partition.isr):
                outcomes[name, number] = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            else:
                usable = [broker for broker in live if broker not in partition.offline]
                after = elect_leader(partition, usable, unclean)
                if after is None:
                    outcomes[name, number] = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
                else:
                    outcomes[name, number] = ErrorCode.NONE
                    changes.append((name, after))
        return outcomes, changes

    async def directory_failed(self, path: str) -> None:
        """Take the leaders of an offline log directory of this broker away."""
        await self._queue.run(lambda: self._take_from(path))

    async def _take_from(self, path: str) -> None:
        node_id = self._own.node_id
        changes = []
        for name, number in await self._own.door.directory_failed(path):
            partition = self._image.partition(name, number)
            if partition is not None and partition.leader == node_id:
                changes.append((name, without_leader(partition, (node_id,))))
        await self._change(changes)

    async def change_isr(self, key: TopicPartition, leader_epoch: int, isr: tuple[int, ...]) -> bool:
        """Write the ISR that the leader of this epoch asks for. False if the partition has another leader by now."""
        return await self._queue.run(lambda: self._change_isr(key, leader_epoch, isr))

    async def _change_isr(self, key: TopicPartition, leader_epoch: int, isr: tuple[int, ...]) -> bool:
        known = self._image.partition(*key)
        if known is None or known.leader_epoch != leader_epoch:
            return False
        topic = key[0]
        after = known._replace(isr=isr)
        operation = operations_to_change_state(topic, after, self._image.controller_epoch)
        await self._session.multi([operation])
        await self._own.show([(self._image.topics[topic], [after])])
        return True

    async def _change(self, changes: Changes) -> None:
        if not changes:
            return
        epoch = self._image.controller_epoch
        operations = [operations_to_change_state(name, partition, epoch) for name, partition in changes]
        await self._session.multi(operations)
        changed: dict[str, list[PartitionImage]] = {}
        for name, partition in changes:
            changed.setdefault(name, []).append(partition)
        topics = self._image.topics
        await self._own.take([(topics[name], partitions) for name, partitions in changed.items() if name in topics])
