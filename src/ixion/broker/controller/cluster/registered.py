"""Reads the registered brokers from the tree."""

from __future__ import annotations

import asyncio
import logging

from ixion.broker.controller.cluster.cluster import Member
from ixion.broker.metadata import paths
from ixion.broker.metadata.broker_node import decode_registration
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.errors import NoNodeError
from ixion.broker.metadata.session import MetadataSession

logger = logging.getLogger(__name__)


async def registered_brokers(session: MetadataSession) -> dict[int, Member]:
    """By id. A registration that cannot be read is logged and left out."""

    async def read(name: str) -> Member | None:
        try:
            node = await session.get(f"{paths.BROKERS}/{name}")
            registration = decode_registration(int(name), node.data)
        except NoNodeError:
            return None
        except (CorruptNodeError, ValueError) as error:
            logger.error("the broker registered at %s/%s is ignored: %s", paths.BROKERS, name, error)
            return None
        return Member(broker_id=int(name), epoch=node.stat.created_zxid, registration=registration)

    found = await asyncio.gather(*[read(name) for name in await session.children(paths.BROKERS)])
    members = [member for member in found if member is not None]
    return {member.broker_id: member for member in sorted(members, key=lambda member: member.broker_id)}
