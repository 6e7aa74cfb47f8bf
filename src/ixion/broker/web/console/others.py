"""Asks the other brokers of the cluster, as this broker, over connections of its own.

One that does not answer within `PATIENCE_S` is not asked again for `SILENCE_S`: a page that is looked at every few
seconds must not wait each time for a machine that is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.timer.clock import NS_PER_MS, Clock, system_clock

if TYPE_CHECKING:
    from ixion.broker.metadata.image import ClusterImage
    from ixion.broker.replica.broker_channels import BrokerChannels

PATIENCE_S: Final = 3.0
SILENCE_S: Final = 15.0
MOST_ASKED: Final = 100  # brokers, for one view


class Silence(NamedTuple):
    until_ns: int
    why: str


class Reply(NamedTuple):
    """`answer` is None if there was none in time, or an error; `why` says which."""

    answer: Struct | None
    why: str
    took_ms: float


class Others:
    def __init__(
        self,
        image: ClusterImage,
        node_id: int,
        make: Callable[[], BrokerChannels | None],
        clock: Clock = system_clock,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """`make` makes the connections, or None if this broker is alone; it is called with the first question."""
        self._image = image
        self._node_id = node_id
        self._make = make
        self._clock = clock
        self._patience_s = patience_s
        self._channels: BrokerChannels | None = None
        self._silent: dict[int, Silence] = {}
        self._closed = False

    def there(self) -> list[int]:
        """The other brokers that are registered."""
        return [each for each in sorted(self._image.brokers) if each != self._node_id][:MOST_ASKED]

    async def ask(self, broker: int, api: ApiKey, request: Struct, *, oldest: int, newest: int) -> Struct:
        """KafkaError if the broker does not answer in time."""
        silence = self._silent.get(broker)
        if silence is not None:
            if self._clock() < silence.until_ns:
                raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, silence.why)
            del self._silent[broker]
        if self._channels is None and not self._closed:
            self._channels = self._make()
        if self._channels is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "this broker is alone")
        why = f"broker {broker} did not answer within {self._patience_s:g} s"
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._channels.ask(broker, api, request, oldest=oldest, newest=newest)
        except TimeoutError:
            pass
        except KafkaError as error:
            why = f"broker {broker}: {error.message or error.code.explanation}"
        self._silent[broker] = Silence(self._clock() + int(SILENCE_S * 1000) * NS_PER_MS, why[:300])
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, why[:300])

    async def ask_all(self, api: ApiKey, request: Struct, *, oldest: int, newest: int) -> Mapping[int, Reply]:
        """What each of the others answers, asked at the same time."""
        brokers = self.there()

        async def one(broker: int) -> Reply:
            began = self._clock()
            try:
                answer = await self.ask(broker, api, request, oldest=oldest, newest=newest)
            except KafkaError as error:
                return Reply(None, error.message or error.code.explanation, 0.0)
            return Reply(answer, "", (self._clock() - began) / NS_PER_MS)

        return dict(zip(brokers, await asyncio.gather(*(one(each) for each in brokers)), strict=True))

    def close(self) -> None:
        self._closed = True
        if self._channels is not None:
            self._channels.close()
