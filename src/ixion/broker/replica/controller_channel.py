"""Sends requests to the controller of the cluster.

The cluster image names the controller; a controller on this broker is asked over a socket, too. The caller handles
NOT_CONTROLLER: it asks again once UpdateMetadata has named another controller.
"""

from __future__ import annotations

from typing import Final

from ixion.broker.metadata.image import ClusterImage
from ixion.clients.address import Address
from ixion.clients.channel import Channel, Connect, connect
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

TIMEOUT_S: Final = 30.0


class ControllerChannel:
    def __init__(self, image: ClusterImage, listener: str, node_id: int, connect: Connect = connect) -> None:
        """`listener`: the name of the listener between brokers."""
        self._image = image
        self._listener = listener
        self._client_id = str(node_id)
        self._connect = connect
        self._channel: Channel | None = None
        self._closed = False

    async def version(self, api: ApiKey, *, oldest: int, newest: int) -> int:
        return await self._controller().version(api, oldest=oldest, newest=newest)

    async def ask(self, api: ApiKey, version: int, request: Struct) -> Struct:
        """KafkaError if there is no controller, or it cannot be reached."""
        return await self._controller().ask(api, version, request)

    def leave(self) -> None:
        """Another controller was elected. Requests in flight fail, so that their callers ask the new one: the machine
        of the earlier one may be gone, and would be waited for until the timeout."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def close(self) -> None:
        self._closed = True
        if self._channel is not None:
            self._channel.close()

    def _controller(self) -> Channel:
        broker = self._image.brokers.get(self._image.controller_id)
        found = None if broker is None else broker.endpoints.get(self._listener)
        if found is None or self._closed:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "no controller is known")
        address = Address(*found)
        if self._channel is None or self._channel.address != address:
            if self._channel is not None:
                self._channel.close()
            self._channel = self._connect(address, self._client_id, TIMEOUT_S)
        return self._channel
