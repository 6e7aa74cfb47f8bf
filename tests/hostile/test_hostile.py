"""Every input of the table, against a broker in a process of its own: an error or the end of the connection, bounded
memory, and other clients that are served meanwhile."""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Iterator

import pytest

from ixion.language.protocol.envelope import decode_response
from ixion.language.protocol.messages.k00_produce import ProduceResponse
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.served import Served
from tests.hostile.inputs import INPUTS, MIB, Input, Take, asked, produced
from tests.hostile.queues import queues
from tests.hostile.witness import Witness, ask, connect, forget_peak, memory_mb, take
from tests.log.support import batch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the resident set from /proc")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("hostile")) as running:
        client = connect(running.bootstrap)
        client.sendall(asked(3, 9, MetadataRequest(topics=(MetadataRequestTopic(name="hostile"),))))
        assert take(client) is not None
        client.close()
        yield running
        running.stop_without_stalls()


@pytest.fixture(scope="module")
def witness(served: Served) -> Iterator[Witness]:
    witness = Witness(served.bootstrap)
    yield witness
    witness.close()


def code_of(answer: bytes) -> int:
    """Of a Produce with one partition."""
    _, body = decode_response(0, 9, answer)
    assert isinstance(body, ProduceResponse)
    return body.responses[0].partition_responses[0].error_code


@pytest.mark.parametrize("given", [*INPUTS, *queues()], ids=lambda given: given.name)
def test_it_is_taken_as_it_should(served: Served, witness: Witness, given: Input) -> None:
    data = given.make()
    pid = served.process.pid
    forget_peak(pid)
    before = memory_mb(pid)
    with connect(served.bootstrap, shown=not given.fresh) as client:
        try:
            client.sendall(data)
        except ConnectionError:
            pass  # closed before all of it was sent
        answer = take(client)
        if given.take is Take.CLOSE:
            assert answer is None
        else:
            assert answer is not None
            assert given.take is Take.BEAR or code_of(answer) != 0
            ask(client)  # the connection goes on
    assert witness.alive
    assert memory_mb(pid, "VmHWM") - before <= 2 * len(data) // MIB + given.cost_mb


def test_half_a_request_and_the_end(served: Served, witness: Witness) -> None:
    whole = produced(batch(b"v" * 1000))
    for size in (1, 3, 4, 5, 100, len(whole) - 1):
        client = connect(served.bootstrap)
        client.sendall(whole[:size])
        client.shutdown(socket.SHUT_WR)
        assert take(client) is None
        client.close()
    assert witness.alive


def test_half_requests_leave_nothing_behind(served: Served, witness: Witness) -> None:
    pid = served.process.pid
    before = memory_mb(pid)
    for _ in range(8):
        with connect(served.bootstrap) as client:
            client.sendall(struct.pack(">i", 60 * MIB) + bytes(40 * MIB))
        assert witness.alive
    deadline = time.monotonic() + 20
    while memory_mb(pid) - before > 100 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert memory_mb(pid) - before <= 100


def test_byte_by_byte_is_slow_and_no_sin(served: Served) -> None:
    client = connect(served.bootstrap)
    for byte in produced(batch(b"v")):
        client.sendall(bytes((byte,)))
    answer = take(client)
    assert answer is not None
    assert code_of(answer) == 0
    client.close()


def test_the_largest_request_announced_again_and_again_and_never_sent(served: Served, witness: Witness) -> None:
    """They hold neither memory nor the slots of clients that send."""
    pid = served.process.pid
    before = memory_mb(pid)
    silent = [connect(served.bootstrap) for _ in range(20)]
    for client in silent:
        client.sendall(struct.pack(">i", 100 * MIB) + b"\0\0\0\x09")
    assert witness.alive
    client = connect(served.bootstrap)
    client.sendall(produced(batch(b"v" * 100_000)))
    answer = take(client)
    assert answer is not None
    assert code_of(answer) == 0
    assert memory_mb(pid) - before < 24
    client.close()
    for other in silent:
        other.close()


def test_connections_that_come_and_go(served: Served, witness: Witness) -> None:
    for _ in range(500):
        connect(served.bootstrap, shown=False).close()
    assert witness.alive


def test_requests_sent_far_ahead_are_answered_one_after_the_other(served: Served, witness: Witness) -> None:
    client = connect(served.bootstrap)
    count = 2000
    ahead = b"".join(struct.pack(">ihhih", 11, 18, 0, number, 1) + b"x" for number in range(count))
    client.sendall(ahead)
    for number in range(count):
        answer = take(client)
        assert answer is not None
        assert struct.unpack(">i", answer[:4]) == (number,)
    client.close()
    assert witness.alive


def test_a_client_that_never_reads_its_answers(served: Served, witness: Witness) -> None:
    """What it is owed stays with it: one answer, and not one per request."""
    pid = served.process.pid
    before = memory_mb(pid)
    client = connect(served.bootstrap)
    client.settimeout(0.5)
    request = asked(3, 9, MetadataRequest(topics=None))
    try:
        for _ in range(200_000):
            client.sendall(request * 100)
    except TimeoutError:
        pass  # the broker does not read on
    assert witness.alive
    assert memory_mb(pid) - before < 64
    client.close()
