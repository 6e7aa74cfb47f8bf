"""One connection, and all that a broker can do to it."""

from __future__ import annotations

import socket
import threading

import pytest

from ixion.clients.address import Address
from ixion.clients.connection import Connection
from ixion.clients.deadline import Deadline
from ixion.clients.faults import DisconnectedError, TimedOutError, UnreachableError
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.messages.k03_metadata import MetadataRequest, MetadataResponse
from ixion.protocol.registry import ApiKey
from tests.clients.fake import FakeCluster, Fault


def connect(fakes: FakeCluster) -> Connection:
    return Connection(Address("127.0.0.1", fakes.nodes[1].port), Deadline(5))


def ask(connection: Connection, seconds: float = 5) -> MetadataResponse:
    return connection.call(ApiKey.METADATA, MetadataRequest(topics=None), MetadataResponse, Deadline(seconds))


def test_a_call_is_answered_in_the_newest_version_of_both() -> None:
    with FakeCluster(newest={ApiKey.METADATA: 9}) as fakes, connect(fakes) as connection:
        assert connection.version(ApiKey.METADATA) == 9
        assert connection.version(ApiKey.FETCH) == ApiKey.FETCH.newest
        assert connection.version(ApiKey.FETCH, newest=12) == 12
        assert ask(connection).controller_id == 1
        assert connection.in_flight == 0


@pytest.mark.parametrize("theirs", [0, 2, 3])
def test_an_older_broker_is_asked_for_its_versions_in_its_own(theirs: int) -> None:
    with FakeCluster(newest={ApiKey.API_VERSIONS: theirs}) as fakes, connect(fakes) as connection:
        assert connection.versions[ApiKey.API_VERSIONS] == (0, theirs)
        assert ApiKey.PRODUCE in connection.versions


def test_what_the_broker_does_not_speak_is_said_by_name() -> None:
    with FakeCluster(newest={ApiKey.FETCH: 4}) as fakes, connect(fakes) as connection:
        with pytest.raises(KafkaError, match="does not offer CreatePartitions") as caught:
            connection.version(ApiKey.CREATE_PARTITIONS)
        assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
        with pytest.raises(KafkaError, match=r"Fetch is spoken by 127.0.0.1:\d+ in versions 4 to 4, by us in 12 to 18"):
            connection.version(ApiKey.FETCH, oldest=12)


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (Fault.DROP, DisconnectedError, "closed the connection with 1 of our requests unanswered"),
        (Fault.HALF, DisconnectedError, "closed the connection with 1 of our requests unanswered"),
        (Fault.WRONG_ID, DisconnectedError, "an answer to 2, but the one to 1 is due"),
        (Fault.GARBAGE, DisconnectedError, "sent an answer that cannot be read: ResponseHeader"),
        (Fault.SILENCE, TimedOutError, r"gave no answer within 0\.05 s"),
    ],
)
def test_a_fault_ends_the_connection_and_says_why(fault: Fault, kind: type[KafkaError], message: str) -> None:
    with FakeCluster() as fakes, connect(fakes) as connection:
        fakes.at(1, ApiKey.METADATA, fault)
        with pytest.raises(kind, match=message):
            ask(connection, 0.05 if fault is Fault.SILENCE else 5)
        assert connection.closed


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(UnreachableError, match=rf"nobody listens on 127.0.0.1:{port}; is the broker running\?"):
        Connection(Address("127.0.0.1", port), Deadline(5))
    with pytest.raises(UnreachableError, match=r"there is no host '256\.256\.256\.256'"):
        Connection(Address("256.256.256.256", 9092), Deadline(5))


def test_somebody_who_never_answers() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as mute,
        pytest.raises(TimedOutError, match=r"gave no answer within 0\.05 s"),
    ):
        Connection(Address("127.0.0.1", mute.getsockname()[1]), Deadline(0.05))


def test_somebody_who_is_no_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def talk() -> None:
            client, _ = other.accept()
            with client:
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                client.recv(100_000)

        thread = threading.Thread(target=talk)
        thread.start()
        with pytest.raises(
            DisconnectedError, match="does not answer as a Kafka broker would: a frame of 1213486160 bytes"
        ):
            Connection(Address("127.0.0.1", other.getsockname()[1]), Deadline(5))
        thread.join()


def test_requests_ahead_are_answered_in_order() -> None:
    with FakeCluster() as fakes, connect(fakes) as connection:
        fakes.add_topic("orders", [1])
        ids = [connection.send(ApiKey.METADATA, MetadataRequest(topics=None), 12 - number) for number in range(3)]
        answers = [connection.receive(Deadline(5)) for _ in ids]
        assert ids == [1, 2, 3]
        assert [answer.topics[0].name for answer in answers if isinstance(answer, MetadataResponse)] == ["orders"] * 3
        assert connection.waited_s == 0
