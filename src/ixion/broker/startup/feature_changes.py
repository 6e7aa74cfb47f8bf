"""Follows the finalized features in `/feature`: the controller changes them, and every broker applies them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import decode_features
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.errors import MetadataError, NoNodeError
from ixion.broker.metadata.session import Event, MetadataSession

if TYPE_CHECKING:
    from ixion.broker.startup.parts import Parts

logger = logging.getLogger(__name__)


class FeatureChanges:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def resume(self, session: MetadataSession) -> None:
        """Watch first, then read, so that no change in between is missed."""
        session.watch(paths.FEATURES, self._follow_soon)
        await self.read()

    def _follow_soon(self, _event: Event) -> None:
        parts = self._parts
        task = parts.loop.create_task(self._follow())
        parts.background.add(task)
        task.add_done_callback(parts.background.discard)

    async def _follow(self) -> None:
        try:
            await self.read()
        except MetadataError as error:  # the next session or event continues
            logger.warning("changed features cannot be read now: %s", error)

    async def read(self) -> None:
        """Read the features. If the node cannot be read, that is logged and the features stay."""
        image = self._parts.image
        try:
            node = await self._parts.session.get(paths.FEATURES)
            found = decode_features(node.data)
        except NoNodeError:
            return
        except CorruptNodeError as error:
            logger.error("%s is ignored: %s", paths.FEATURES, error)
            return
        if node.stat.version >= image.features_epoch and found != image.features:
            image.features = found
            image.version += 1
        image.features_epoch = max(image.features_epoch, node.stat.version)
