"""The widest requests that a frame holds, and the longest turn of the loop that each of them costs.

Every list of every request is flooded (`tests.hostile.genes`), here until the frame is as large as is wanted, or has as
many elements as the broker reads. The broker runs on a thread of this process, so that its stall watch can be read
after each request. Times are processor time of the loop's thread.

    python -m tests.hostile.wide [MEGABYTES] [API KEY …]        prints the longest turn of each API; takes some minutes
"""

from __future__ import annotations

import gc
import socket
import struct
import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Final, NamedTuple, Self

from ixion.broker.apis.served import SERVED
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from ixion.timer.collector import relax_collector
from tests.apis.raw import Raw
from tests.hostile.genes import PARTITIONS, TOPICS, WIDE, Gene, lists_of, shaped
from tests.hostile.witness import connect

ZOOM: Final = 25  # the watch counts turns over 50 ms; by a clock that runs so much faster, turns over 2 ms
QUIET_MS: Final = 2.0  # processor time that is no work
QUIET_LOOKS: Final = 5


class Turn(NamedTuple):
    busy_ms: float  # processor time of the longest turn; 0: shorter than 2 ms
    answered: bool
    waits: bool  # for other clients; neither: the connection was closed


class Wide:
    """A broker with topics and coordinators, and the turns that requests to it take."""

    def __init__(self) -> None:
        self._broker = Broker({"auto.create.topics.enable": False, "log.cleaner.enable": False}, memory=True)
        self.ids: list[bytes] = []
        self._met: set[ApiKey] = set()

    def __enter__(self) -> Self:
        self._broker.start()
        for number in range(TOPICS):
            self._broker.create_topic(f"t{number}")
        self._broker.create_topic(WIDE, PARTITIONS)
        with Raw(self._broker.bootstrap) as client:
            for kind in (0, 1):
                request = FindCoordinatorRequest(key="g", key_type=kind)
                while client.ask(ApiKey.FIND_COORDINATOR, 3, request).error_code:
                    pass
            names = tuple(MetadataRequestTopic(name=f"t{number}") for number in range(TOPICS))
            answer = client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=names))
            self.ids = [topic.topic_id for topic in answer.topics]
        relax_collector()
        self._broker.call(zoom)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._broker.stop()

    @property
    def bootstrap(self) -> str:
        return self._broker.bootstrap

    def turn(self, request: bytes) -> Turn:
        gc.freeze()  # what made the request is no matter of the broker's
        self._broker.call(longest)
        with connect(self.bootstrap) as client:
            answered = self._answer(client, request)
        return Turn(self._broker.call(longest) / ZOOM / 1e6, answered is True, answered is None)

    def widest(self, api: ApiKey, gene: Gene, size: int) -> tuple[Turn, bytes]:
        """Of the largest request that is not refused for its number of elements. A small one goes first, because the
        first request of an API imports its modules, however wide it is."""
        if api not in self._met:
            self._met.add(api)
            self.turn(shaped(api, gene, 100, self.ids))
        while True:
            request = shaped(api, gene, size, self.ids)
            turn = self.turn(request)
            if turn.answered or turn.waits or size < 1_000:
                return turn, request
            size = size * 3 // 5

    def _answer(self, client: socket.socket, request: bytes) -> bool | None:
        """False if the connection is closed, None if there is no answer before the broker falls silent."""
        try:
            client.sendall(request)
            client.settimeout(0.05)
            head, quiet = b"", 0
            while not head and quiet < QUIET_LOOKS:
                used = self._broker.call(used_ms)
                try:
                    head = client.recv(4, socket.MSG_WAITALL)
                    if not head:
                        return False
                except TimeoutError:
                    quiet = quiet + 1 if self._broker.call(used_ms) - used < QUIET_MS else 0
            if len(head) < 4:
                return None
            client.settimeout(30)
            (left,) = struct.unpack(">i", head)
            while left:
                left -= len(client.recv(min(left, 1 << 20)))
            return True
        except ConnectionError:
            return False


async def zoom(real: RealBroker) -> None:
    stalls = real.parts.stalls
    stalls._clock = lambda: time.monotonic_ns() * ZOOM
    stalls._processor_clock = lambda: time.thread_time_ns() * ZOOM
    stalls._asked_ns = 0


async def longest(real: RealBroker) -> int:
    """The longest turn since this was last asked."""
    stalls = real.parts.stalls
    took = int(stalls.longest_busy_ns)
    stalls.start_over()
    return took


async def used_ms(_real: RealBroker) -> float:
    return time.thread_time_ns() / 1e6


def genes(api: ApiKey) -> Iterator[Gene]:
    for flood in lists_of(api):
        yield Gene(flood=flood, text="unknown")
        yield Gene(flood=flood, text="known")
        yield Gene(flood=flood, shape="deep", text="unknown")
    if api is ApiKey.JOIN_GROUP:  # the newest version gives a member its id first
        yield Gene(flood="/protocols", text="unknown", newest=False)


def main(words: list[str]) -> None:
    size = int(float(words[0]) * 1_000_000) if words else 4_000_000
    keys = {int(word) for word in words[1:]}
    with Wide() as wide:
        for api in SERVED:
            if keys and int(api) not in keys:
                continue
            worst, by = 0.0, "nothing"
            for gene in genes(api):
                turn, request = wide.widest(api, gene, size)
                if turn.busy_ms >= worst:
                    worst, by = turn.busy_ms, f"{gene.as_json()}, {len(request):,} bytes"
            print(f"{int(api):3} {api.name:32} {worst:7.1f} ms  {by}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
