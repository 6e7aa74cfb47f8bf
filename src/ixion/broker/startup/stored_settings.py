"""Settings in the tree. A node that cannot be read is logged and does not keep a broker from starting."""

from __future__ import annotations

import logging

from ixion.broker.metadata import paths
from ixion.broker.metadata.config_node import read_config
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.session import MetadataSession
from ixion.config.topic import KEEP_ALL

logger = logging.getLogger(__name__)


async def stored_settings(session: MetadataSession, kind: str, entity: str) -> dict[str, str]:
    """The settings of an entity. If they cannot be read, a topic keeps all its records, and others have no settings."""
    try:
        return await read_config(session, kind, entity)
    except CorruptNodeError as error:
        logger.error("%s is ignored: %s", paths.config(kind, entity), error)
        return dict(KEEP_ALL) if kind == "topics" else {}
