"""Changes settings and feature levels in the tree."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from ixion.broker.controller.queue import ChangeQueue
from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import encode_features
from ixion.broker.metadata.config_node import decode_config, encode_config
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.errors import BadVersionError, NodeExistsError, NoNodeError
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.metadata.node import Create, Operation, Set
from ixion.broker.metadata.notification_node import encode_config_change
from ixion.broker.metadata.session import MetadataSession
from ixion.config.ineffective import topic_settings_without_effect
from ixion.language.model.errors import ErrorCode, KafkaError

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
        """Another broker may change the same settings at the same time. Only what was read is replaced; if it is no
        longer there, it is read and changed again."""
        session = self.session
        path = paths.config(kind, entity)
        while True:
            current, version = await self._read(kind, entity)
            wanted = change(dict(current))
            if validate_only:
                return
            await ensure(session, [path.rpartition("/")[0], paths.CONFIG_CHANGES])
            try:
                await session.multi(operations_to_configure(kind, entity, wanted, version))
                break
            except (BadVersionError, NodeExistsError, NoNodeError):
                if (await self._read(kind, entity))[1] == version:
                    raise  # nobody has changed them: the tree refuses something else
        if kind == "topics":
            changed = {name: value for name, value in wanted.items() if current.get(name) != value}
            warn_without_effect(entity, changed)
        if self.on_change is not None:
            await self.on_change(kind, entity)

    async def _read(self, kind: str, entity: str) -> tuple[dict[str, str], int | None]:
        """The settings, and the version of their node; None if there is no node."""
        try:
            node = await self.session.get(paths.config(kind, entity))
        except NoNodeError:
            return {}, None
        try:
            return decode_config(f"{kind}/{entity}", node.data), node.stat.version
        except CorruptNodeError as error:  # this change replaces it
            logger.error("%s is replaced: %s", paths.config(kind, entity), error)
            return {}, node.stat.version

    async def change_features(self, change: Callable[[dict[str, int]], dict[str, int]]) -> None:
        """Put other feature levels in force. An error of `change` goes to the caller, and nothing is changed."""
        self._check_controller()
        await self._queue.run(lambda: self._change_features(change))

    async def _change_features(self, change: Callable[[dict[str, int]], dict[str, int]]) -> None:
        wanted = change(dict(self._image.features))
        if wanted != self._image.features:
            data = encode_features(wanted)
            try:
                stat = await self.session.set(paths.FEATURES, data, self._image.features_epoch)
            except BadVersionError:  # the controller before this one has changed them, and the event is on its way
                raise KafkaError(ErrorCode.NOT_CONTROLLER, "the features were changed meanwhile; try again") from None
            self._image.features = wanted
            self._image.features_epoch = stat.version
            self._image.version += 1


def operations_to_configure(kind: str, entity: str, config: Mapping[str, str], version: int | None) -> list[Operation]:
    """`version` is that of the node to be replaced; None: it is created."""
    path = paths.config(kind, entity)
    data = encode_config(config)
    return [
        Create(path, data) if version is None else Set(path, data, version),
        Create(paths.NEW_CONFIG_CHANGE, encode_config_change(f"{kind}/{entity}"), sequential=True),
    ]


def warn_without_effect(topic: str, config: Mapping[str, str]) -> None:
    idle = topic_settings_without_effect(config)
    if idle:
        logger.warning("topic %s: set, but without effect in ixion: %s", topic, ", ".join(idle))
