"""The election of the controller: the first broker that creates `/controller` is elected.

It writes the next controller epoch in the same transaction, at the version that it has read. So of two brokers that try
at the same time only one succeeds, and the writes of an older controller carry an older epoch. If the connection is
lost, the broker reads whether it was elected: `/controller` then belongs to its session.
"""

from __future__ import annotations

from typing import NamedTuple

from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import (
    decode_controller,
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
)
from ixion.broker.metadata.errors import BadVersionError, ConnectionLostError, NodeExistsError, NoNodeError
from ixion.broker.metadata.node import Create, Set, Stat
from ixion.broker.metadata.session import MetadataSession


class Elected(NamedTuple):
    controller_id: int
    epoch: int
    epoch_version: int  # of the node that holds the epoch: a controller's writes check it
    owner: int  # the session that owns `/controller`; 0: a KRaft controller owns it in a migration


class OtherControllerError(Exception):
    """Another broker is the controller."""

    def __init__(self, controller_id: int) -> None:
        super().__init__(f"broker {controller_id} is the controller")
        self.controller_id = controller_id


async def elect(session: MetadataSession, broker_id: int, now_ms: int) -> Elected:
    """Try to become the controller. Returns the controller: this broker, or the one that was faster."""
    while True:
        try:
            node = await session.get(paths.CONTROLLER_EPOCH)
            epoch = decode_controller_epoch(node.data)
            version = node.stat.version
        except NoNodeError:
            try:
                await session.create(paths.CONTROLLER_EPOCH, encode_controller_epoch(0))
            except NodeExistsError:
                pass
            continue
        try:
            held = await session.get(paths.CONTROLLER)
            now = await session.get(paths.CONTROLLER_EPOCH)
            if now.stat.version != version:
                continue  # an election between the two reads: the epoch belongs to another controller
            return Elected(
                controller_id=decode_controller(held.data), epoch=epoch, epoch_version=version, owner=held.stat.owner
            )
        except NoNodeError:
            pass
        try:
            stat, _ = await session.multi(
                (
                    Set(paths.CONTROLLER_EPOCH, encode_controller_epoch(epoch + 1), version),
                    Create(paths.CONTROLLER, encode_controller(broker_id, now_ms), ephemeral=True),
                )
            )
        except (BadVersionError, NodeExistsError, ConnectionLostError):
            continue  # another broker was faster, or the answer is lost: read which broker holds it
        assert isinstance(stat, Stat)
        return Elected(controller_id=broker_id, epoch=epoch + 1, epoch_version=stat.version, owner=session.session_id)
