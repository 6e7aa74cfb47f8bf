"""The disks of a broker that is alone, for its controller; and its in-sync replicas, which that controller writes.

Methods about logs block and are called on the controller's thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from ixion.broker.log.manager import LogManager
from ixion.broker.metadata.errors import MetadataError
from ixion.broker.metadata.image import PartitionImage, TopicImage
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.partition import Partition
from ixion.language.model.delay_names import topic_of
from ixion.language.model.errors import KafkaError
from ixion.language.model.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

# Writes the ISR of a partition whose leader has this epoch; False if there is another leader by now.
ChangeIsr = Callable[[TopicPartition, int, tuple[int, ...]], Awaitable[bool]]


class OwnDisks:
    def __init__(self, replicas: ReplicaManager, logs: LogManager) -> None:
        self._replicas = replicas
        self._logs = logs

    @property
    def offline(self) -> Collection[TopicPartition]:
        return self._replicas.offline

    def check_room(self) -> None:
        self._logs.check_room()

    def set_strays_aside(self, topics: Iterable[TopicImage]) -> None:
        """Rename stray logs instead of deleting them: they may be needed."""
        known = {topic.name: topic for topic in topics}
        for (name, number), log in list(self._logs.logs.items()):
            topic = known.get(topic_of(name, known))
            if topic is not None and number < len(topic.partitions) and log.topic_id in (None, topic.topic_id):
                continue
            try:
                logger.warning("%s belongs to no topic; it is kept as %s", log.name, self._logs.set_aside(name, number))
            except KafkaError as error:
                logger.error("%s belongs to no topic, and cannot be set aside: %s", log.name, error)

    def open_again(
        self, waiting: Sequence[tuple[TopicImage, PartitionImage]]
    ) -> list[tuple[TopicImage, PartitionImage]]:
        self._logs.load_missing()
        opened = []
        for topic, partition in waiting:
            try:
                self._logs.of(topic.name, partition.number).check_none_offline()
                self._logs.create(topic.name, partition.number, topic.topic_id)
                opened.append((topic, partition))
            except KafkaError:
                continue  # it was logged when it went offline
        return opened


def propose_isr_to(replicas: ReplicaManager, change_isr: ChangeIsr) -> None:
    """Let `change_isr` decide whenever a leader on this broker wants another ISR."""

    def wanted(partition: Partition, isr: tuple[int, ...]) -> None:
        task = asyncio.get_running_loop().create_task(propose(replicas, partition, isr, change_isr))
        task.add_done_callback(report_failure)

    replicas.on_isr_wanted = wanted


async def propose(replicas: ReplicaManager, partition: Partition, isr: tuple[int, ...], change_isr: ChangeIsr) -> None:
    try:
        changed = await change_isr(partition.key, partition.leader_epoch, isr)
    except (MetadataError, KafkaError):
        partition.set_isr(partition.isr)
        raise
    if changed and partition.set_isr(isr):
        replicas.high_watermark_moved(partition)


def report_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("changing the in-sync replicas failed", exc_info=task.exception())
