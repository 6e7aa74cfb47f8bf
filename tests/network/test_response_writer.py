"""A response is written in pieces, as fast as the client takes them, and others have their turn in between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ixion.broker.network.response_writer import PAUSED, PIECE, SENT, TURN, TURN_OVER, ResponseWriter
from ixion.language.protocol.codec.sink import Buffer, Deferred, Part


class Zeros(Deferred):
    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.reads: list[tuple[int, int]] = []

    def read(self, start: int, size: int) -> bytes:
        self.reads.append((start, size))
        return bytes(size)


class Taking(asyncio.Transport):
    """Pauses the writer after `room` bytes."""

    def __init__(self, writer: ResponseWriter, room: int = 1 << 62) -> None:
        super().__init__()
        self.writer = writer
        self.room = room
        self.taken = 0

    def write(self, data: Buffer) -> None:
        self.taken += len(data)
        self.writer.paused = self.taken > self.room

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        for data in list_of_data:
            self.write(data)


def test_a_response_in_memory_is_sent_at_once() -> None:
    writer = ResponseWriter()
    transport = Taking(writer)
    assert writer.write(transport, [b"one"]) == SENT
    assert (transport.taken, writer.size, writer.written) == (3, 3, 3)
    assert writer.write(transport, [b"one", b"two"]) == SENT
    assert (transport.taken, writer.size, writer.has_more) == (9, 6, False)


def test_a_response_in_memory_that_the_client_does_not_take_waits_in_the_transport() -> None:
    writer = ResponseWriter()
    assert writer.write(Taking(writer, room=2), [b"one"]) == PAUSED
    assert not writer.has_more


def test_a_file_is_read_no_further_than_the_client_takes() -> None:
    writer = ResponseWriter()
    transport = Taking(writer, room=0)
    stretch = Zeros(3 * PIECE)
    parts: list[Part] = [b"head", stretch, b"tail"]
    assert writer.write(transport, parts) == PAUSED
    assert (stretch.reads, writer.written, writer.has_more) == ([(0, PIECE)], PIECE + 4, True)
    transport.room = 1 << 62
    writer.paused = False
    assert writer.write_on(transport) == SENT
    assert (transport.taken, writer.size, writer.has_more) == (3 * PIECE + 8, 3 * PIECE + 8, False)


def test_a_response_whose_last_piece_is_paused_has_no_more() -> None:
    writer = ResponseWriter()
    assert writer.write(Taking(writer, room=0), [Zeros(10)]) == PAUSED
    assert not writer.has_more


def test_others_have_their_turn_after_a_few_pieces() -> None:
    writer = ResponseWriter()
    transport = Taking(writer)
    states = [writer.write(transport, [Zeros(2 * TURN + 1)])]
    sizes = [transport.taken]
    while states[-1] == TURN_OVER:
        states.append(writer.write_on(transport))
        sizes.append(transport.taken)
    assert states == [TURN_OVER, TURN_OVER, SENT]
    assert sizes == [TURN, 2 * TURN, 2 * TURN + 1]


def test_a_connection_that_is_over_keeps_nothing() -> None:
    writer = ResponseWriter()
    transport = Taking(writer, room=0)
    writer.write(transport, [Zeros(3 * PIECE)])
    writer.drop()
    assert not writer.has_more
    taken = transport.taken
    assert writer.write_on(transport) == SENT
    assert transport.taken == taken
