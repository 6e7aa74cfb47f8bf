"""This broker as a member of a cluster: it serves the controller's requests, and follows leaders on other brokers.

On an embedded tree a broker is alone: it follows no leader, and the code for that is not imported.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import decode_controller_epoch
from ixion.broker.metadata.errors import NoNodeError
from ixion.broker.metadata.node import ANY_VERSION, Check
from ixion.broker.replica.control import Control, at_once
from ixion.broker.startup.stored_settings import stored_settings
from ixion.config import quota_settings as quota
from ixion.config.listeners import listeners
from ixion.config.replica_settings import RACK_AWARE_SELECTOR, REPLICA_SELECTOR_CLASS

if TYPE_CHECKING:
    from ixion.broker.replica.replication_quota import ReplicationQuota
    from ixion.broker.startup.parts import Parts
    from ixion.config.setting import Setting

logger = logging.getLogger(__name__)


def make_control(parts: Parts) -> Control:
    async def last_controller_epoch() -> int:
        try:
            return decode_controller_epoch((await parts.session.get(paths.CONTROLLER_EPOCH)).data)
        except NoNodeError:
            return 0

    async def settings_of(topic: str) -> dict[str, str]:
        return await stored_settings(parts.session, "topics", topic)

    async def catch_up() -> None:
        # A ZooKeeper server answers reads by itself, and may lag behind what the controller has just written. A
        # transaction goes through ZooKeeper's leader; when our server answers it, the server has everything that was
        # written before.
        await parts.session.multi([Check(paths.CONTROLLER_EPOCH, ANY_VERSION)])

    async def topic_names() -> set[str]:
        return set(await parts.session.children(paths.TOPICS))

    control = Control(
        parts.image,
        parts.replicas,
        parts.logs,
        broker_epoch=lambda: parts.broker_epoch,
        last_controller_epoch=last_controller_epoch,
        read_config=settings_of,
        workers=parts.scheduler.workers,
        catch_up=at_once if parts.engine else catch_up,
        topic_names=None if parts.engine else topic_names,
    )
    if parts.engine is None:
        join_others(parts, control)
    return control


def join_others(parts: Parts, control: Control) -> None:
    """Follow leaders on other brokers, and let the controller decide about in-sync replicas."""
    from ixion.broker.replica.broker_channels import BrokerChannels
    from ixion.broker.replica.controller_channel import ControllerChannel
    from ixion.broker.replica.fetchers import FetcherPool
    from ixion.broker.replica.isr_changes import IsrChanges
    from ixion.broker.replica.selecting import RackAwareSelector
    from ixion.broker.startup.peers import connect_to

    image, replicas = parts.image, parts.replicas
    listener = listeners(parts.config.current).inter_broker
    connect = connect_to(parts.config, listener)
    limit_copying(parts)
    if parts.config.current[REPLICA_SELECTOR_CLASS] == RACK_AWARE_SELECTOR:
        replicas.selector = RackAwareSelector(image)
    parts.to_controller = ControllerChannel(image, listener, parts.node_id, connect)
    parts.undo.append(("channel to the controller", parts.to_controller.close))
    control.on_controller.append(parts.to_controller.leave)
    parts.to_brokers = BrokerChannels(image, listener, f"broker-{parts.node_id}-transactions", connect)
    parts.undo.append(("channels to brokers", parts.to_brokers.close))
    changes = IsrChanges(replicas, parts.to_controller, lambda: parts.broker_epoch)
    replicas.on_isr_wanted = changes.wanted
    replicas.is_alive = lambda broker: broker in image.brokers
    parts.undo.append(("changes of in-sync replicas", changes.close))
    parts.fetchers = control.fetchers = FetcherPool(
        replicas,
        image,
        listener=listener,
        broker_epoch=lambda: parts.broker_epoch,
        config=lambda: parts.config.current,
        workers=parts.scheduler.workers,
        connect=connect,
    )
    parts.replicas.on_reconfigured.append(parts.fetchers.reconfigured)
    parts.undo.append(("fetchers", parts.fetchers.close))


def limit_copying(parts: Parts) -> None:
    """Replication quotas, whose limits may change while the broker runs."""
    from ixion.broker.replica.replication_quota import ReplicationQuota

    config = parts.config.current
    windows = config[quota.REPLICATION_QUOTA_WINDOW_NUM]
    window_ms = config[quota.REPLICATION_QUOTA_WINDOW_SIZE_SECONDS] * 1_000

    def made(limit: Setting[int]) -> ReplicationQuota:
        return ReplicationQuota(lambda: parts.config.current[limit], parts.clock_ms, windows, window_ms)

    parts.replicas.leader_quota = made(quota.LEADER_REPLICATION_THROTTLED_RATE)
    parts.replicas.follower_quota = made(quota.FOLLOWER_REPLICATION_THROTTLED_RATE)
