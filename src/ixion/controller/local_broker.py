"""Carries out on this broker what the controller has decided: makes and deletes logs, and lets replicas lead.

The rest of the controller knows neither logs nor replicas. A decision of the controller is a topic with its partitions
(`TopicImage`, `PartitionImage`), which is what LeaderAndIsr and StopReplica tell other brokers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from ixion.config.dynamic import DynamicConfig
from ixion.log.manager import LogManager
from ixion.log.together import for_each
from ixion.metadata.errors import MetadataError
from ixion.metadata.image import PartitionImage, TopicImage
from ixion.model.delay_names import topic_of
from ixion.model.errors import KafkaError
from ixion.model.topic_partition import TopicPartition
from ixion.replica.log_settings import log_config
from ixion.replica.manager import ReplicaManager
from ixion.replica.partition import Partition
from ixion.timer.turns import Steps

logger = logging.getLogger(__name__)

# Writes the ISR of a partition whose leader has this epoch; False if the leader is another by now.
ChangeIsr = Callable[[TopicPartition, int, tuple[int, ...]], Awaitable[bool]]


class LocalBroker:
    """Methods about logs block and are called on the controller's thread, the others on the event loop."""

    def __init__(self, node_id: int, replicas: ReplicaManager, logs: LogManager, config: DynamicConfig) -> None:
        self.node_id = node_id
        self._replicas = replicas
        self._logs = logs
        self._config = config

    # Logs.

    def check_room(self) -> None:
        """KafkaError if the disks have no room for another log."""
        self._logs.check_room()

    def make_logs(self, wanted: Iterable[tuple[TopicImage, PartitionImage]]) -> None:
        """The logs of those partitions that this broker leads. One that cannot be made is logged; it stays offline."""
        here = [each for each in wanted if each[1].leader == self.node_id]
        # The cluster image has the topics only after this, so the logs get their settings here.
        topics = {topic.name: topic for topic, _ in here}
        settings = {name: log_config(self._config.current, topic.config, name) for name, topic in topics.items()}

        def make(each: tuple[TopicImage, PartitionImage]) -> None:
            topic, partition = each
            self._logs.create(topic.name, partition.number, topic.topic_id, config=settings[topic.name])

        for (topic, partition), error in for_each(here, make):
            logger.error("the log of %s-%d cannot be made: %s", topic.name, partition.number, error)

    def delete_logs(self, topics: Collection[str]) -> None:
        doomed = [key for key in list(self._logs.logs) if key[0] in topics or topic_of(key[0]) in topics]
        for _, error in for_each(doomed, lambda key: self._logs.delete(*key)):
            logger.error("%s", error)

    def set_strays_aside(self, topics: Iterable[TopicImage]) -> None:
        """Rename the logs of no topic, or of an earlier topic of that name. Nothing is deleted: it may be needed."""
        known = {topic.name: topic for topic in topics}
        for (name, number), log in list(self._logs.logs.items()):
            topic = known.get(topic_of(name))
            if topic is not None and number < len(topic.partitions) and log.topic_id in (None, topic.topic_id):
                continue
            try:
                logger.warning("%s belongs to no topic; it is kept as %s", log.name, self._logs.set_aside(name, number))
            except KafkaError as error:
                logger.error("%s belongs to no topic, and cannot be set aside: %s", log.name, error)

    def open_again(self, waiting: Sequence[tuple[TopicImage, PartitionImage]]) -> bool:
        """Try again to open logs that could not be opened. Whether any of them is there now."""
        self._logs.load_missing()
        found = False
        for topic, partition in waiting:
            try:
                self._logs.create(topic.name, partition.number, topic.topic_id)
                found = True
            except KafkaError:
                continue  # it was logged when it went offline
        return found

    # Replicas.

    @property
    def offline(self) -> Collection[TopicPartition]:
        """Partitions that this broker should lead, but whose logs it could not open."""
        return self._replicas.offline

    def lead(self, topic: TopicImage, partition: PartitionImage) -> None:
        """Lead the partition, if this broker is its leader."""
        if partition.leader != self.node_id:
            return
        try:
            self._replicas.lead(
                topic.name,
                partition.number,
                topic.topic_id,
                partition.leader_epoch,
                partition.isr,
                partition.replicas,
            )
        except KafkaError as error:
            logger.error("%s-%d stays offline: %s", topic.name, partition.number, error)
            self._replicas.offline.add((topic.name, partition.number))

    def lead_all(self, topic: TopicImage, partitions: Sequence[PartitionImage]) -> Steps[None]:
        for partition in partitions:
            self.lead(topic, partition)
            yield

    def lead_opened(self, waiting: Sequence[tuple[TopicImage, PartitionImage]]) -> None:
        """Lead those of the partitions whose logs are open now."""
        for topic, partition in waiting:
            if self._logs.get(topic.name, partition.number) is not None:
                self.lead(topic, partition)
            if (topic.name, partition.number) not in self._replicas.offline:
                logger.warning("%s-%d is online again", topic.name, partition.number)

    def state_changed(self, topic: TopicImage, partition: PartitionImage) -> None:
        """Follow a new leader epoch. Operations that wait on the partition look again."""
        self.lead(topic, partition)
        self._replicas.wake_all((topic.name, partition.number))

    def stop_all(self, topics: Iterable[TopicImage]) -> Steps[None]:
        for topic in topics:
            for partition in topic.partitions:
                self._replicas.stop(topic.name, partition.number, delete=False)
                yield

    def directory_failed(self, path: str) -> list[TopicPartition]:
        """Take the replicas of a log directory offline."""
        return self._replicas.directory_failed(path)

    # In-sync replicas.

    def propose_isr_to(self, change_isr: ChangeIsr) -> None:
        """Let `change_isr` decide whenever a leader on this broker wants another ISR."""

        def wanted(partition: Partition, isr: tuple[int, ...]) -> None:
            task = asyncio.get_running_loop().create_task(self._propose(partition, isr, change_isr))
            task.add_done_callback(report_failure)

        self._replicas.on_isr_wanted = wanted

    async def _propose(self, partition: Partition, isr: tuple[int, ...], change_isr: ChangeIsr) -> None:
        try:
            changed = await change_isr(partition.key, partition.leader_epoch, isr)
        except MetadataError:
            partition.set_isr(partition.isr)
            raise
        if changed and partition.set_isr(isr):
            self._replicas.high_watermark_moved(partition)


def report_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("changing the in-sync replicas failed", exc_info=task.exception())
