"""Steps 1 to 8: the tree, the cluster, the id of this broker, its settings, its threads."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping

from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.meta_properties import FILE_NAME as META_PROPERTIES
from ixion.broker.log.meta_properties import MetaProperties, read_meta_properties
from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import decode_cluster_id, encode_cluster_id
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.errors import NodeExistsError, NoNodeError
from ixion.broker.quota.addresses import AddressRates
from ixion.broker.quota.mutations import Mutations
from ixion.broker.quota.quotas import Quotas
from ixion.broker.startup.errors import (
    InconsistentBrokerIdError,
    InconsistentBrokerMetadataError,
    InconsistentClusterIdError,
)
from ixion.broker.startup.parts import Parts
from ixion.broker.startup.quota_nodes import load_quotas
from ixion.broker.startup.recurring_tasks import keep_session
from ixion.broker.startup.scheduler import Scheduler
from ixion.broker.startup.stored_settings import stored_settings
from ixion.config import cluster_settings as cluster
from ixion.config.dynamic import Level
from ixion.config.quota_settings import (
    CONTROLLER_QUOTA_WINDOW_NUM,
    CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS,
    QUOTA_WINDOW_NUM,
    QUOTA_WINDOW_SIZE_SECONDS,
)
from ixion.language.model.ids import id_text, new_id

logger = logging.getLogger(__name__)


async def base_nodes(parts: Parts) -> None:
    """1. The base nodes of the tree are created."""
    # Without a controller epoch there was never a controller: topics on disk are adopted (`adopt`).
    parts.fresh = await parts.session.exists(paths.CONTROLLER_EPOCH) is None
    await ensure(parts.session, paths.BASE)


async def cluster_id(parts: Parts) -> None:
    """2. The id of the cluster, drawn by the first broker that starts."""
    session = parts.session
    while True:
        try:
            parts.cluster_id = decode_cluster_id((await session.get(paths.CLUSTER_ID)).data)
            return
        except NoNodeError:
            pass
        # A directory that Apache Kafka has written keeps its cluster id: the new tree takes it over.
        metas = read_all_meta(parts.paths)
        known = {found.cluster_id: path for path, found in metas.items() if found is not None and found.cluster_id}
        if parts.engine is None:
            check_new_cluster(parts, known)
        parts.cluster_id = next(iter(known), None) or id_text(new_id())
        await ensure(session, [os.path.dirname(paths.CLUSTER_ID)])
        try:
            await session.create(paths.CLUSTER_ID, encode_cluster_id(parts.cluster_id))
            return
        except NodeExistsError:
            continue  # another broker starts at the same time and was first


def check_new_cluster(parts: Parts, known: Mapping[str, str]) -> None:
    """`known` has the log directories by cluster id. With a wrong path after the ZooKeeper servers this broker would
    become a cluster of its own, and lead partitions that others lead."""
    for cluster_id, path in known.items():
        raise InconsistentClusterIdError(
            f"{path} belongs to cluster {cluster_id}, but there is no cluster at"
            f" zookeeper.connect={parts.config.current[cluster.ZOOKEEPER_CONNECT]} yet; its path may be wrong"
        )


async def load_meta_properties(parts: Parts) -> None:
    """3. meta.properties of every log directory; all must be of one broker and one cluster."""
    parts.found = read_all_meta(parts.paths)
    owners = {(found.cluster_id, found.node_id) for found in parts.found.values() if found is not None}
    if len(owners) > 1:
        lines = "; ".join(
            f"{path}: cluster {found.cluster_id}, broker {found.node_id}"
            for path, found in parts.found.items()
            if found is not None
        )
        raise InconsistentBrokerMetadataError(f"the log directories belong to different brokers: {lines}")


async def cluster_check(parts: Parts) -> None:
    """4. The directories must belong to this cluster."""
    for path, found in parts.found.items():
        if found is not None and found.cluster_id not in (None, parts.cluster_id):
            raise InconsistentClusterIdError(
                f"{path} belongs to cluster {found.cluster_id}, the metadata belongs to cluster {parts.cluster_id};"
                " one of the two is in the wrong place"
            )


async def broker_id(parts: Parts) -> None:
    """5. The broker id: the given one, else that of the directories, else a new one above reserved.broker.max.id."""
    config = parts.config.current
    given = config[cluster.BROKER_ID] if config[cluster.BROKER_ID] >= 0 else config[cluster.NODE_ID]
    stored = next((found.node_id for found in parts.found.values() if found and found.node_id is not None), None)
    if given >= 0 and stored is not None and given != stored:
        raise InconsistentBrokerIdError(
            f"broker.id is {given}, but the log directories are those of broker {stored}; use that id,"
            " or other directories"
        )
    if given >= 0:
        parts.node_id = given
    elif stored is not None:
        parts.node_id = stored
    else:
        sequence = (await parts.session.set(paths.BROKER_SEQUENCE, b"")).version
        parts.node_id = sequence + config[cluster.RESERVED_BROKER_MAX_ID]


async def dynamic_config(parts: Parts) -> None:
    """6. Dynamic settings from the tree over the given ones: those of all brokers, then those of this one."""
    notices = await parts.session.children(paths.CONFIG_CHANGES)
    parts.last_notice = notices[-1] if notices else ""  # later changes are followed in step 25
    for level, entity in ((Level.ALL_BROKERS, paths.DEFAULT_ENTITY), (Level.THIS_BROKER, str(parts.node_id))):
        stored = await stored_settings(parts.session, "brokers", entity)
        for refused in parts.config.restore(level, stored) if stored else ():
            logger.error("a stored setting is ignored: %s", refused)


async def scheduler(parts: Parts) -> None:
    """7. Worker threads for blocking tasks, started by the timer."""
    parts.scheduler = Scheduler(parts.timer, parts.config.current[cluster.BACKGROUND_THREADS], parts.options.make_pool)
    parts.undo.append(("scheduler", parts.scheduler.stop))
    keep_session(parts)


async def quotas(parts: Parts) -> None:
    """8. Quotas of users, client ids and addresses, from the tree."""
    config = parts.config.current
    windows, window_ms = config[QUOTA_WINDOW_NUM], config[QUOTA_WINDOW_SIZE_SECONDS] * 1_000
    parts.quotas = Quotas(windows, window_ms, monotonic_ms)
    parts.mutations = Mutations(
        parts.quotas.limits,
        config[CONTROLLER_QUOTA_WINDOW_NUM],
        config[CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS] * 1_000,
        monotonic_ms,
    )
    parts.address_rates = AddressRates(windows, window_ms, monotonic_ms)
    await load_quotas(parts.session, parts.quotas, parts.address_rates)


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def read_all_meta(directories: list[str]) -> dict[str, MetaProperties | None]:
    found: dict[str, MetaProperties | None] = {}
    for path in directories:
        try:
            found[path] = read_meta_properties(os.path.join(path, META_PROPERTIES))
        except CorruptFileError as error:
            raise InconsistentBrokerMetadataError(f"{error}; restore the file, or remove it if it is lost") from error
    return found
