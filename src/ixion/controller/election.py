"""The election of the controller: the broker that creates `/controller` first is it.

It writes the next controller epoch in the same transaction, under the version that it has read. So of two brokers that
try at the same time only one succeeds, and what an older controller wrote carries an older epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

from ixion.metadata import paths
from ixion.metadata.cluster_node import (
    decode_controller,
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
)
from ixion.metadata.errors import BadVersionError, NodeExistsError, NoNodeError
from ixion.metadata.node import Create, Set
from ixion.metadata.session import MetadataSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Elected:
    controller_id: int
    epoch: int


class OtherControllerError(Exception):
    """Another broker is the controller."""

    def __init__(self, controller_id: int) -> None:
        super().__init__(f"broker {controller_id} is the controller")
        self.controller_id = controller_id


async def elect(session: MetadataSession, broker_id: int, now_ms: int) -> Elected:
    """Try to become the controller; returns the controller there is then."""
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
            held = decode_controller((await session.get(paths.CONTROLLER)).data)
            return Elected(controller_id=held, epoch=epoch)
        except NoNodeError:
            pass
        try:
            await session.multi(
                (
                    Set(paths.CONTROLLER_EPOCH, encode_controller_epoch(epoch + 1), version),
                    Create(paths.CONTROLLER, encode_controller(broker_id, now_ms), ephemeral=True),
                )
            )
        except (BadVersionError, NodeExistsError):
            continue  # another broker was faster: read which
        return Elected(controller_id=broker_id, epoch=epoch + 1)
