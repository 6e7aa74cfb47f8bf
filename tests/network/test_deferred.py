"""Answers that are still in a file when they are begun: read as fast as the client takes them."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Iterable
from itertools import pairwise

from ixion.broker.network import Answer, Request
from ixion.broker.network.connection import Connection
from ixion.broker.network.response_writer import PIECE, TURN
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.codec.sink import Buffer, Deferred, Part
from tests.network.harness import echo, on_loop, request_bytes, running

MIB = 1 << 20
FILE = random.Random(1).randbytes(1_000_003) * 34


class Stretch(Deferred):
    """Of a file that has no two pieces alike."""

    def __init__(self, size: int, broken_at: int = 1 << 60) -> None:
        super().__init__(size)
        self.taken: list[tuple[int, int]] = []
        self.broken_at = broken_at

    def read(self, start: int, size: int) -> bytes:
        if start + size > self.broken_at:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "cut off")
        self.taken.append((start, size))
        return FILE[start : start + size]


class Answering:
    """Every request is answered with the same parts; one with a payload gets that back."""

    def __init__(self, *parts: Part) -> None:
        self.parts = parts

    def __call__(self, request: Request) -> Answer:
        if request.frame.size > 12:
            return echo(request)
        size = sum(map(len, self.parts))
        return [struct.pack(">ii", size + 4, request.frame.correlation_id), *self.parts]


@on_loop
async def test_files_and_buffers_come_in_their_order() -> None:
    first, second, third = Stretch(3 * PIECE), Stretch(PIECE // 2 + 5), Stretch(1)
    async with running(Answering(first, b"between", second, third, b"end")) as run:
        client = await run.connect()
        client.send(request_bytes(1) + request_bytes(2, b"after"))
        expected = FILE[: 3 * PIECE] + b"between" + FILE[: PIECE // 2 + 5] + FILE[:1] + b"end"
        assert await client.answer() == (1, expected)
        assert await client.answer() == (2, b"after")
        assert max(size for _, size in first.taken + second.taken) <= PIECE
        snapshot = run.server.snapshot()
        assert snapshot.bytes_out == 8 + len(expected) + 8 + 5


@on_loop
async def test_what_a_slow_reader_does_not_take_is_not_read() -> None:
    stretch = Stretch(32 * MIB)
    async with running(Answering(stretch)) as run:
        slow = await run.connect(limit=1024)
        slow.send(request_bytes(1))
        await run.until(lambda: run.server.snapshot().slow_readers == 1)
        assert run.server.snapshot().unsent_bytes <= PIECE + 8
        read = sum(size for _, size in stretch.taken)
        assert read < 16 * MIB  # what the two sockets hold, and a piece
        witness = await run.connect()
        await witness.ask(2, b"undisturbed")
        assert sum(size for _, size in stretch.taken) == read
        number, body = await slow.answer()
        assert (number, body == FILE[: 32 * MIB]) == (1, True)
        assert run.server.snapshot().slow_readers == 0


@on_loop
async def test_a_reader_that_takes_nothing_more_is_closed_in_time() -> None:
    stretch = Stretch(32 * MIB)
    async with running(Answering(stretch), stall_ms=1000, slowest_bytes_per_second=PIECE) as run:
        slow = await run.connect(limit=1024)
        slow.send(request_bytes(1))
        await run.until(lambda: run.server.snapshot().slow_readers == 1)
        run.clock.advance(5000)
        await run.until(lambda: run.closed("slow_reader") == 1)


@on_loop
async def test_bytes_that_are_gone_end_the_connection_and_no_other() -> None:
    async with running(Answering(Stretch(4 * PIECE, broken_at=2 * PIECE + 1))) as run:
        client, witness = await run.connect(), await run.connect()
        client.send(request_bytes(1))
        assert await client.closed()
        assert run.closed("unreadable") == 1
        assert await witness.ask(2, b"undisturbed") == b"undisturbed"


class Swallowing(asyncio.Transport):
    """A client that takes whatever is written, at once."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        self.taken += sum(map(len, list_of_data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def close(self) -> None:
        pass


@on_loop
async def test_a_client_that_takes_everything_at_once_leaves_others_their_turn() -> None:
    async with running(Answering(Stretch(5 * TURN))) as run:
        processor = run.server.acceptors[0].processors[0]
        connection = Connection(processor, 7, "PLAINTEXT", "127.0.0.9")
        transport = Swallowing()
        connection.connection_made(transport)
        request = request_bytes(1)
        connection.get_buffer(-1)[: len(request)] = request
        connection.buffer_updated(len(request))
        await run.until(lambda: transport.taken > 0)
        seen = [transport.taken]
        while connection.busy:
            await asyncio.sleep(0)
            seen.append(transport.taken)
        assert seen[-1] == 5 * TURN + 8
        assert max(after - before for before, after in pairwise([0, *seen])) <= TURN + 8
        processor.connections.pop(7)
