"""A proxy in front of a broker that knows Kafka's frames, and spoils some of them on request.

    with Proxies() as proxies:
        port = proxies.add(broker_host, broker_port)     # advertise this one to clients
        with proxies.spoiled(Faults(drop=0.05), random): # for as long as the block lasts
            ...
        with proxies.shut(port):                         # nothing passes, neither way
            ...

    cut     half a frame arrives, then the connection ends: of a request or of an answer
    drop    the broker gets the request and carries it out; its answer never arrives
    delay   an answer arrives late, and with it all answers after it on this connection
    hold    a request arrives late: what the client sends meanwhile on other connections overtakes it; not those
            that end a transaction by the protocol before KIP-890

Each is the chance that one frame meets this fault. An answer belongs to a request: brokers answer in order, except that
a produce without acknowledgement has no answer, so `drop` and `delay` look at answers only.

ZooKeeper's packets begin with their length, too, so a proxy may stand in front of a tree. Frames that met a shut proxy
arrive when it is open again, as packets do that are sent again.
"""

from __future__ import annotations

import asyncio
import random
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from struct import unpack_from
from types import TracebackType
from typing import Final, Self
from weakref import WeakSet

# AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, TxnOffsetCommit, and the versions that name the epoch of one transaction.
# A producer of KIP-890 does not send the first two at all.
SINCE_EPOCHS: Final = {24: 1 << 15, 25: 1 << 15, 26: 5, 28: 5}
LARGEST: Final = 100 << 20  # of a frame; more is no frame of Kafka's
TURNS_S: Final = 0.05  # some turns of the loop
LATE_S: Final = (0.1, 2.5)  # the clients' socket.timeout.ms is 1000


@dataclass(frozen=True)
class Faults:
    cut: float = 0.0
    drop: float = 0.0
    delay: float = 0.0
    hold: float = 0.0


CALM: Final = Faults()


def may_be_late(frame: bytes) -> bool:
    """Whether clients rely on a request that they gave up being carried out later, or never.

    Before KIP-890 a producer keeps its epoch from one transaction to the next, and no broker, Apache Kafka's neither,
    can tell a late request about the last transaction from one about this one. A late EndTxn then commits what is
    still being written: soak seed 217 showed it with librdkafka 2.16.
    """
    key, version = unpack_from(">hh", frame, 4) if len(frame) >= 8 else (-1, -1)
    return bool(version >= SINCE_EPOCHS.get(key, 0))


class Proxies:
    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self._faults = CALM
        self._random = random.Random(0)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies")
        self._tasks: dict[asyncio.Task[None], socket.socket] = {}
        self._transports: WeakSet[asyncio.WriteTransport] = WeakSet()
        self._listeners: list[socket.socket] = []
        self._open: dict[int, asyncio.Event] = {}  # by port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def add(self, host: str, port: int, listen_on: str = "127.0.0.1") -> int:
        """The port of the new proxy. It may begin before the broker does."""
        return asyncio.run_coroutine_threadsafe(self._listen(host, port, listen_on), self._loop).result(30)

    @contextmanager
    def spoiled(self, faults: Faults, chance: random.Random) -> Iterator[None]:
        self._random = random.Random(chance.random())
        self._faults = faults
        try:
            yield
        finally:
            self._faults = CALM

    @contextmanager
    def shut(self, port: int) -> Iterator[None]:
        self._loop.call_soon_threadsafe(self._open[port].clear)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self._open[port].set)

    # On the loop.

    async def _listen(self, host: str, port: int, listen_on: str) -> int:
        listener = socket.create_server((listen_on, 0))
        listener.setblocking(False)
        found: int = listener.getsockname()[1]
        is_open = self._open[found] = asyncio.Event()
        is_open.set()
        self._listeners.append(listener)
        self._loop.add_reader(listener, self._take, listener, host, port, is_open)
        return found

    def _take(self, listener: socket.socket, host: str, port: int, is_open: asyncio.Event) -> None:
        """Connections are taken by hand: asyncio's server loses track of those that it takes while it is closed."""
        try:
            taken, _ = listener.accept()
        except OSError:
            return  # the peer is gone already
        taken.setblocking(False)
        task = self._loop.create_task(self._met(taken, host, port, is_open))
        self._tasks[task] = taken
        task.add_done_callback(self._tasks.pop)

    async def _met(self, taken: socket.socket, host: str, port: int, is_open: asyncio.Event) -> None:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(sock=taken)
            self._transports.add(writer.transport)
            await self._carry(reader, writer, host, port, is_open)

    async def _end(self) -> None:
        for listener in self._listeners:
            self._loop.remove_reader(listener)
            listener.close()
        sockets = list(self._tasks.values())
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for transport in list(self._transports):
            transport.abort()  # one that is closed still waits for a peer that reads no more, such as a paused broker
        await asyncio.sleep(TURNS_S)  # they end in a later turn
        for taken in sockets:
            taken.close()  # of a task that was cancelled before it began

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        host: str,
        port: int,
        is_open: asyncio.Event,
    ) -> None:
        """One connection, until one end closes it or a fault does."""
        beyond: asyncio.StreamWriter | None = None
        try:
            await is_open.wait()
            answers, beyond = await asyncio.open_connection(host, port)
            self._transports.add(beyond.transport)
            ways = [
                asyncio.ensure_future(self._requests(reader, beyond, is_open)),
                asyncio.ensure_future(self._answers(answers, writer, is_open)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except OSError:
            pass  # the broker is not there
        finally:
            for each in (writer, beyond):
                if each is not None:
                    each.close()

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_open: asyncio.Event
    ) -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                frame = await read_frame(reader)
                await is_open.wait()
                if may_be_late(frame) and self._meets("hold", self._faults.hold):
                    await asyncio.sleep(self._random.uniform(*LATE_S))
                if self._meets("cut a request", self._faults.cut):
                    await send_part(writer, frame, self._random)
                    return
                writer.write(frame)
                await writer.drain()

    async def _answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_open: asyncio.Event
    ) -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                frame = await read_frame(reader)
                await is_open.wait()
                if self._meets("delay", self._faults.delay):
                    await asyncio.sleep(self._random.uniform(*LATE_S))
                if self._meets("cut an answer", self._faults.cut):
                    await send_part(writer, frame, self._random)
                    return
                if self._meets("drop", self._faults.drop):
                    return  # Kafka's answers have an order: without this one the connection is of no use
                writer.write(frame)
                await writer.drain()

    def _meets(self, name: str, chance: float) -> bool:
        met = chance > 0 and self._random.random() < chance
        if met:
            self.done[name] += 1
        return met


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """With its length. OSError if the bytes are no frames."""
    size = await reader.readexactly(4)
    length = int.from_bytes(size, "big", signed=True)
    if not 0 <= length <= LARGEST:
        raise OSError(f"a frame of {length} bytes")
    return size + await reader.readexactly(length)


async def send_part(writer: asyncio.StreamWriter, frame: bytes, chance: random.Random) -> None:
    """A part that is neither nothing nor all; the length in front may be torn, too."""
    writer.write(frame[: chance.randrange(1, len(frame))])
    await writer.drain()
