"""Connections to the leaders and coordinators on other brokers: one per broker, made on demand."""

from __future__ import annotations

from typing import Final

from ixion.broker.metadata.image import ClusterImage
from ixion.clients.address import Address
from ixion.clients.channel import Channel, Connect, connect
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

TIMEOUT_S: Final = 30.0


class BrokerChannels:
    def __init__(self, image: ClusterImage, listener: str, client_id: str, connect: Connect = connect) -> None:
        """`listener`: the name of the listener between brokers."""
        self._image = image
        self._listener = listener
        self._client_id = client_id
        self._connect = connect
        self._channels: dict[int, Channel] = {}
        self._closed = False

    async def ask(self, broker_id: int, api: ApiKey, request: Struct, *, oldest: int, newest: int) -> Struct:
        """The answer, in the newest version that both speak. KafkaError if the broker cannot be reached."""
        channel = self._channel_to(broker_id)
        return await channel.ask(api, await channel.version(api, oldest=oldest, newest=newest), request)

    def close(self) -> None:
        """Close for good: late work must not open another connection, because nothing would close it."""
        self._closed = True
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

    def _channel_to(self, broker_id: int) -> Channel:
        broker = self._image.brokers.get(broker_id)
        found = None if broker is None else broker.endpoints.get(self._listener)
        if found is None or self._closed:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not a live broker")
        address = Address(*found)
        channel = self._channels.get(broker_id)
        if channel is None or channel.address != address:
            if channel is not None:
                channel.close()
            channel = self._channels[broker_id] = self._connect(address, self._client_id, TIMEOUT_S)
        return channel
