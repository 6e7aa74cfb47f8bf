"""How the schedule topics of this broker reach their targets, on any broker of the cluster.

Created with the first schedule topic. This broker produces to a target on another broker over the listener between
brokers: with ACLs, brokers must be super users or have the right to write to it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ixion.broker.log.config import LogConfig
from ixion.broker.replica.broker_channels import BrokerChannels
from ixion.broker.replica.log_settings import log_config
from ixion.broker.schedules.targets import Place, Targets
from ixion.config.broker import BrokerConfig
from ixion.config.listeners import listeners
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

if TYPE_CHECKING:
    from ixion.broker.startup.parts import Parts


def schedule_targets(parts: Parts) -> Targets:
    if parts.targets is None:
        parts.targets = make_targets(parts)
    return parts.targets


def make_targets(parts: Parts) -> Targets:
    image, replicas = parts.image, parts.replicas
    known: dict[str, tuple[BrokerConfig, dict[str, str], LogConfig]] = {}

    def config_of(topic: str, number: int) -> LogConfig:
        partition = replicas.partition(topic, number)
        if partition is not None:
            return partition.log.config
        broker, given = parts.config.current, image.topic_config(topic) or {}
        last = known.get(topic)
        if last is None or last[0] is not broker or last[1] is not given:
            last = known[topic] = (broker, given, log_config(broker, given, topic))
        return last[2]

    def find(topic: str, number: int) -> Place | None:
        partition = image.partition(topic, number)
        return None if partition is None else Place(partition.leader, config_of(topic, number))

    async def producer_id() -> int:
        taken: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def done(code: ErrorCode, producer_id: int, _epoch: int) -> None:
            if taken.done():
                return
            if code == ErrorCode.NONE:
                taken.set_result(producer_id)
            else:
                taken.set_exception(KafkaError(code, f"no producer id for a schedule topic: {code.name}"))

        parts.transactions.get().init_producer_id(None, 0, -1, -1, done)
        return await taken

    channels = make_channels(parts)

    async def ask(broker_id: int, api: ApiKey, request: Struct, oldest: int, newest: int) -> Struct:
        if channels is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no broker {broker_id}")
        return await channels.ask(broker_id, api, request, oldest=oldest, newest=newest)

    if channels is not None:
        parts.close_targets = channels.close
    return Targets(replicas, find=find, ask=ask, producer_id=producer_id)


def make_channels(parts: Parts) -> BrokerChannels | None:
    """Separate connections: waiting for acks=all delays all later requests on the same connection."""
    if parts.engine is not None:
        return None
    from ixion.broker.startup.peers import connect_to

    listener = listeners(parts.config.current).inter_broker
    connect = connect_to(parts.config, listener)
    return BrokerChannels(parts.image, listener, f"broker-{parts.node_id}-schedules", connect)
