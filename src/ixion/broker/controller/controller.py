"""The controller: one broker of the cluster, which makes every change of topics, leaders and settings.

This is the controller of a broker that is alone. A change goes to the tree first, and then to the broker, by the
requests that a controller sends to any broker (`own_broker`): these change roles, logs and the cluster image. `queue`
runs one change at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ixion.broker.controller.configs import Configs
from ixion.broker.controller.leaders import Leaders
from ixion.broker.controller.own_broker import OwnBroker
from ixion.broker.controller.queue import ChangeQueue
from ixion.broker.controller.reassignments import Reassignments
from ixion.broker.controller.take_over import take_over
from ixion.broker.controller.topics import Topics
from ixion.broker.metadata.image import ClusterImage, PartitionImage, TopicImage
from ixion.broker.metadata.session import MetadataSession
from ixion.config.dynamic import DynamicConfig
from ixion.language.model.pools import MakePool, threads

logger = logging.getLogger(__name__)


class Controller:
    def __init__(
        self,
        session: MetadataSession,
        image: ClusterImage,
        own: OwnBroker,
        config: DynamicConfig,
        clock_ms: Callable[[], int],
        make_pool: MakePool = threads,
    ) -> None:
        self._session = session
        self._image = image
        self._own = own
        self._clock_ms = clock_ms
        self.queue = ChangeQueue(make_pool)
        self.topics = Topics(self.queue, session, image, own, config)
        self.leaders = Leaders(self.queue, session, image, own)
        self.configs = Configs(self.queue, session, image)
        self.reassignments = Reassignments(image)

    async def start(self, unclean: bool) -> None:
        """Become the controller, finish what was begun, bring every partition of this broker online.

        `unclean`: the broker did not stop cleanly. Then the disk may hold less than clients saw, and every partition
        gets a new leader epoch, so that clients notice.
        """
        live = tuple(self._image.brokers)
        now_ms = self._clock_ms()
        taken = await take_over(self._session, self.queue, self._own, live, now_ms, unclean)
        await self._own.begin(taken.topics)
        logger.info(
            "controller %d, epoch %d: %d topics, %d new leaders",
            taken.elected.controller_id,
            taken.elected.epoch,
            len(taken.topics),
            taken.changes,
        )

    @property
    def has_more_to_do(self) -> bool:
        """Whether `bring_back` may find something to do."""
        return bool(self._own.disks.offline or self.topics.half_deleted)

    async def bring_back(self) -> None:
        """Finish what had to wait for room or for file descriptors: partitions offline, topics half deleted."""
        await self.queue.run(self._bring_back)

    async def _bring_back(self) -> None:
        if self.topics.half_deleted:
            await self.topics.finish_deletions()
        waiting: list[tuple[TopicImage, PartitionImage]] = []
        for name, number in sorted(self._own.disks.offline):
            partition = self._image.partition(name, number)
            if partition is not None and partition.leader == self._own.node_id:
                waiting.append((self._image.topics[name], partition))
        if not waiting:
            return
        opened = await self.queue.in_thread(lambda: self._own.disks.open_again(waiting))
        await self._own.lead([(topic, [partition]) for topic, partition in opened])
        for topic, partition in opened:
            if (topic.name, partition.number) not in self._own.disks.offline:
                logger.warning("%s-%d is online again", topic.name, partition.number)

    async def stop(self) -> None:
        """Returns when the running change has ended."""
        self.queue.stop()
        async with self.queue.turn:
            pass
