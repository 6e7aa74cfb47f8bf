"""The share coordinator, and the way to those of other brokers, made when they are first needed.

They are needed as soon as this broker leads a partition of `__share_group_state`, or when a share group subscribes to a
topic or fetches.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from ixion.broker.replica.internal_topic import SHARE_STATE

if TYPE_CHECKING:
    from ixion.broker.coordinators.share.coordinator import ShareCoordinator
    from ixion.broker.coordinators.share.router import StateRouter
    from ixion.broker.startup.parts import Parts


class LateShares:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._made: ShareCoordinator | None = None
        self._router: StateRouter | None = None
        self._stopped = False

    @property
    def made(self) -> ShareCoordinator | None:
        """None: not needed yet."""
        return self._made

    def import_code(self) -> None:
        """Import what `get` and `router` need. On a worker thread."""
        import_module("ixion.broker.coordinators.share.router")

    def prepare_to_lead(self, topic: str) -> None:
        """As `import_code`, if this broker is about to lead a partition of `__share_group_state`."""
        if topic == SHARE_STATE:
            self.import_code()

    def get(self) -> ShareCoordinator:
        made = self._made
        if made is None:
            from ixion.broker.coordinators.share.coordinator import ShareCoordinator

            parts = self._parts
            made = self._made = ShareCoordinator(
                parts.internal_topics[SHARE_STATE],
                timer=parts.timer,
                clock_ms=parts.clock_ms,
                config=parts.config,
                exists=self._exists,
            )
            if not self._stopped:
                made.start()
        return made

    def router(self) -> StateRouter:
        made = self._router
        if made is None:
            from ixion.broker.coordinators.share.router import StateRouter

            parts = self._parts
            made = self._router = StateRouter(
                parts.internal_topics[SHARE_STATE],
                self.get,
                node_id=parts.node_id,
                image=parts.image,
                channels=parts.to_brokers,
                timer=parts.timer,
                config=parts.config,
            )
        return made

    def follow(self, topic: str, partition: int, leader_epoch: int) -> None:
        if topic == SHARE_STATE:
            if leader_epoch >= 0:
                self.get().on_elected(partition, leader_epoch)
            elif self._made is not None:
                self._made.on_resigned(partition)

    def on_topics_deleted(self, _names: Iterable[str]) -> None:
        if self._made is not None:
            self._made.forget_missing()

    def stop(self) -> None:
        self._stopped = True
        if self._router is not None:
            self._router.stop()
        if self._made is not None:
            self._made.stop()

    def _exists(self, topic_id: bytes, partition: int) -> bool:
        image = self._parts.image
        topic = image.ids.get(topic_id)
        return partition < len(topic.partitions) if topic is not None else not image.complete
