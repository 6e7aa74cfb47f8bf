"""Changes settings and feature levels in the tree."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from ixion.config.ineffective import topic_settings_without_effect
from ixion.controller.queue import ChangeQueue
from ixion.metadata import paths
from ixion.metadata.cluster_node import encode_features
from ixion.metadata.config_node import encode_config, read_config
from ixion.metadata.content import CorruptNodeError
from ixion.metadata.ensure import ensure
from ixion.metadata.image import ClusterImage
from ixion.metadata.node import Create, Operation, Set
from ixion.metadata.notification_node import encode_config_change
from ixion.metadata.session import MetadataSession

logger = logging.getLogger(__name__)


class Configs:
    def __init__(
        self,
        queue: ChangeQueue,
        session: MetadataSession,
        image: ClusterImage,
        check_controller: Callable[[], object] = lambda: None,
    ) -> None:
        """`check_controller` raises if this broker is not the controller: any broker may change settings, but only the
        controller features."""
        self._queue = queue
        self.session = session
        self._image = image
        self._check_controller = check_controller
        self.on_change: Callable[[str, str], Awaitable[None]] | None = None  # kind, entity

    async def alter(
        self, kind: str, entity: str, change: Callable[[dict[str, str]], Mapping[str, str]], validate_only: bool = False
    ) -> None:
        """Replace the settings of an entity by the result of `change`. They are in force when this returns.

        `change` validates its result. An error that it raises goes to the caller, and nothing is changed.
        """
        await self._queue.run(lambda: self._alter(kind, entity, change, validate_only))

    async def _alter(
        self, kind: str, entity: str, change: Callable[[dict[str, str]], Mapping[str, str]], validate_only: bool
    ) -> None:
        session = self.session
        try:
            current = await read_config(session, kind, entity)
        except CorruptNodeError as error:  # this change replaces it
            logger.error("%s is replaced: %s", paths.config(kind, entity), error)
            current = {}
        wanted = change(dict(current))
        if validate_only:
            return
        if kind == "topics":
            changed = {name: value for name, value in wanted.items() if current.get(name) != value}
            warn_without_effect(entity, changed)
        await ensure(session, [paths.config(kind, entity).rpartition("/")[0], paths.CONFIG_CHANGES])
        exists = await session.exists(paths.config(kind, entity)) is not None
        await session.multi(operations_to_configure(kind, entity, wanted, exists))
        if self.on_change is not None:
            await self.on_change(kind, entity)

    async def change_features(self, change: Callable[[dict[str, int]], dict[str, int]]) -> None:
        """Put other feature levels in force. An error of `change` goes to the caller, and nothing is changed."""
        self._check_controller()
        await self._queue.run(lambda: self._change_features(change))

    async def _change_features(self, change: Callable[[dict[str, int]], dict[str, int]]) -> None:
        wanted = change(dict(self._image.features))
        if wanted != self._image.features:
            data = encode_features(wanted)
            stat = await self.session.set(paths.FEATURES, data)
            self._image.features = wanted
            self._image.features_epoch = stat.version
            self._image.version += 1


def operations_to_configure(kind: str, entity: str, config: Mapping[str, str], exists: bool) -> list[Operation]:
    path = paths.config(kind, entity)
    data = encode_config(config)
    return [
        Set(path, data) if exists else Create(path, data),
        Create(paths.NEW_CONFIG_CHANGE, encode_config_change(f"{kind}/{entity}"), sequential=True),
    ]


def warn_without_effect(topic: str, config: Mapping[str, str]) -> None:
    idle = topic_settings_without_effect(config)
    if idle:
        logger.warning("topic %s: set, but without effect in ixion: %s", topic, ", ".join(idle))
