"""Quotas in the tree: `/config/users/alice`, `/config/users/alice/clients/app`, `/config/clients/app` and
`/config/ips/10.0.0.1`."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ixion.broker.metadata import paths
from ixion.broker.metadata.errors import NoNodeError
from ixion.broker.metadata.session import MetadataSession
from ixion.broker.quota.addresses import AddressRates
from ixion.broker.quota.limits import CONNECTIONS, DEFAULT, Entity, quotas_of
from ixion.broker.quota.quotas import Quotas
from ixion.broker.startup.stored_settings import stored_settings

logger = logging.getLogger(__name__)


async def load_quotas(session: MetadataSession, quotas: Quotas, addresses: AddressRates) -> None:
    for address in await session.children(f"{paths.CONFIG}/ips"):
        take_address(addresses, address, await stored_settings(session, "ips", address))
    for client_id in await session.children(f"{paths.CONFIG}/clients"):
        take_quotas(quotas, "clients", client_id, await stored_settings(session, "clients", client_id))
    for user in await session.children(f"{paths.CONFIG}/users"):
        take_quotas(quotas, "users", user, await stored_settings(session, "users", user))
        for client_id in await children(session, f"{paths.CONFIG}/users/{user}/clients"):
            entity = f"{user}/clients/{client_id}"
            take_quotas(quotas, "users", entity, await stored_settings(session, "users", entity))


async def children(session: MetadataSession, path: str) -> list[str]:
    try:
        return await session.children(path)
    except NoNodeError:
        return []


def take_quotas(quotas: Quotas, kind: str, entity: str, config: Mapping[str, str]) -> None:
    """Apply the changed settings of an entity. Quotas that cannot be read are logged and left out."""
    try:
        quotas.put(entity_of(kind, entity), quotas_of(config))
    except ValueError as error:
        logger.error("the quotas of %s/%s in the metadata cannot be read: %s", kind, entity, error)


def take_address(addresses: AddressRates, entity: str, config: Mapping[str, str]) -> None:
    """Apply the changed settings of an address."""
    try:
        bound = float(config[CONNECTIONS]) if CONNECTIONS in config else None
    except ValueError as error:
        logger.error("the quota of address %s in the metadata cannot be read: %s", entity, error)
        return
    addresses.put(name_of(entity), bound)


def entity_of(kind: str, entity: str) -> Entity:
    if kind == "clients":
        return Entity(None, name_of(entity))
    user, within, client_id = entity.partition("/clients/")
    return Entity(name_of(user), name_of(client_id) if within else None)


def name_of(node: str) -> str:
    return node if node == DEFAULT else paths.plain(node)
