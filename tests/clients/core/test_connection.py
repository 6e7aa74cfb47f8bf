"""The connection machine: every request comes back once, in order, whatever the bytes and the clock do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.clients.address import Address
from ixion.clients.core.connection import ASKED_IN, CLOSED, ConnectionMachine, Login, Outcome, Pending
from ixion.clients.core.sasl_login import SaslCredentials
from ixion.clients.faults import AuthenticationError, DisconnectedError, GarbledError, TimedOutError, UnreachableError
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataResponse
from ixion.language.protocol.messages.k17_sasl_handshake import SaslHandshakeResponse
from ixion.language.protocol.messages.k18_api_versions import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from ixion.language.protocol.messages.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.wire import ServerConnection
from tests.clients.fake import answer_bytes

WHERE = Address("broker", 9092)
VERSIONS = ApiVersionsResponse(
    error_code=0,
    api_keys=tuple(ApiVersion(api_key=api, min_version=api.oldest, max_version=api.newest) for api in ApiKey),
    finalized_features=(FinalizedFeatureKey(name="transaction.version", max_version_level=2, min_version_level=0),),
)
METADATA = MetadataResponse(brokers=(), controller_id=-1, topics=())


class Asked(Pending):
    def __init__(self, number: int = 0) -> None:
        self.number = number

    def complete(self, outcome: Outcome, now_s: float) -> None:
        raise AssertionError("the owner of the machine completes, not the machine")


class Peer:
    """The broker's side of a machine."""

    def __init__(self, machine: ConnectionMachine) -> None:
        self.machine = machine
        self.wire = ServerConnection()

    def requests(self) -> list[tuple[ApiKey, int, int]]:
        """What the machine has sent: API, version, correlation id."""
        while self.machine.unsent:
            self.wire.receive(bytes(self.machine.unsent.popleft()))
        found = []
        while (frame := self.wire.next_request()) is not None:
            found.append((ApiKey(frame.api_key), frame.api_version, frame.correlation_id))
            self.wire.answered()
        return found

    def answer(self, request: tuple[ApiKey, int, int], body: Struct, now_s: float = 0.0) -> None:
        self.machine.receive(answer_bytes(*request, body), now_s)


def ready(login: Login | None = None) -> tuple[ConnectionMachine, Peer]:
    machine = ConnectionMachine(WHERE, "me", 0.0, connect_timeout_s=10, request_timeout_s=30, login=login)
    peer = Peer(machine)
    machine.connected(1.0)
    (request,) = peer.requests()
    assert request[:2] == (ApiKey.API_VERSIONS, ASKED_IN)
    peer.answer(request, VERSIONS, 1.0)
    return machine, peer


def ask(machine: ConnectionMachine, number: int, now_s: float = 1.0) -> None:
    machine.send(ApiKey.METADATA, 12, MetadataRequest(topics=None), Asked(number), now_s)


def numbers(machine: ConnectionMachine) -> list[int]:
    return [pending.number for pending, _ in machine.take_arrivals() if isinstance(pending, Asked)]


def test_it_is_ready_when_the_broker_has_said_what_it_speaks() -> None:
    machine, _ = ready()
    assert machine.ready
    assert machine.version(ApiKey.PRODUCE) == ApiKey.PRODUCE.newest
    assert machine.features == {"transaction.version": 2}
    assert machine.take_arrivals() == []


def test_an_older_broker_is_asked_again_in_its_own_version() -> None:
    machine = ConnectionMachine(WHERE, "me", 0.0)
    peer = Peer(machine)
    machine.connected(0.0)
    (first,) = peer.requests()
    mine = ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=2)
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(mine,))
    machine.receive(answer_bytes(first[0], 0, first[2], refusal), 0.0)
    (second,) = peer.requests()
    assert second[:2] == (ApiKey.API_VERSIONS, 2)
    peer.answer(second, VERSIONS)
    assert machine.ready


def test_the_places_of_a_login_come_before_all_others() -> None:
    class TwoSteps(Login):
        def __init__(self) -> None:
            self.left = 2

        def first(self, versions: dict[int, tuple[int, int]]) -> tuple[ApiKey, int, Struct] | None:
            assert ApiKey.METADATA in versions
            return self.step()

        def next(self, answer: Struct) -> tuple[ApiKey, int, Struct] | None:
            assert isinstance(answer, SaslAuthenticateResponse)
            if answer.error_code:
                raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, "wrong password")
            return self.step() if self.left else None

        def step(self) -> tuple[ApiKey, int, Struct]:
            self.left -= 1
            return ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=b"x")

    good = SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b"")
    machine, peer = ready(TwoSteps())
    for _ in range(2):
        assert not machine.ready
        (request,) = peer.requests()
        peer.answer(request, good)
    assert machine.ready
    machine, peer = ready(TwoSteps())
    (request,) = peer.requests()
    bad = SaslAuthenticateResponse(error_code=58, error_message="no", auth_bytes=b"")
    peer.answer(request, bad)
    assert machine.fault is not None
    assert machine.fault.message == "wrong password"


def test_answers_are_matched_in_order_and_the_limit_counts_them() -> None:
    machine, peer = ready()
    for number in range(3):
        assert machine.may_send(3, 1.0)
        ask(machine, number)
    assert not machine.may_send(3, 1.0)
    for request in peer.requests():
        peer.answer(request, METADATA)
    assert numbers(machine) == [0, 1, 2]
    assert machine.in_flight == 0


def test_a_throttled_broker_gets_nothing_before_its_time() -> None:
    machine, peer = ready()
    ask(machine, 0)
    (request,) = peer.requests()
    peer.answer(request, MetadataResponse(throttle_time_ms=2000, brokers=(), controller_id=-1, topics=()), 5.0)
    assert not machine.may_send(5, 6.9)
    assert machine.may_send(5, 7.0)


def test_a_request_without_an_answer_is_done_when_it_is_written() -> None:
    machine, _ = ready()
    machine.send(ApiKey.METADATA, 12, MetadataRequest(topics=None), Asked(7), 1.0, answered=False)
    machine.wrote(1.0)
    assert numbers(machine) == []
    machine.unsent.clear()
    machine.wrote(1.0)
    assert numbers(machine) == [7]


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda machine: machine.receive(b"HTTP/1.1 400 Bad Request\r\n", 1.0), GarbledError),
        (lambda machine: machine.receive(b"\0\0\0\6\0\0\0\1\xff\xff", 1.0), GarbledError),
        (lambda machine: machine.receive(b"\0\0\0\4\0\0\1\1", 1.0), GarbledError),
        (lambda machine: machine.lost("reset"), DisconnectedError),
        (lambda machine: machine.lost(), DisconnectedError),
        (lambda machine: machine.expire(31.0), TimedOutError),
    ],
)
def test_every_fault_gives_back_what_is_under_way(
    spoil: Callable[[ConnectionMachine], None], kind: type[KafkaError]
) -> None:
    machine, _ = ready()
    ask(machine, 0)
    ask(machine, 1)
    spoil(machine)
    assert machine.phase == CLOSED
    assert isinstance(machine.fault, kind)
    assert [outcome for _, outcome in machine.arrivals] == [machine.fault] * 2
    assert numbers(machine) == [0, 1]
    machine.receive(b"more", 40.0)
    machine.lost()
    assert machine.take_arrivals() == []


def test_the_deadline_is_that_of_the_oldest_step() -> None:
    machine = ConnectionMachine(WHERE, "me", 0.0, connect_timeout_s=10, request_timeout_s=30)
    assert machine.deadline_s == 10.0
    machine.expire(9.9)
    assert not machine.closed
    machine.expire(10.0)
    assert isinstance(machine.fault, UnreachableError)
    machine, _ = ready()
    assert machine.deadline_s == float("inf")
    ask(machine, 0, now_s=5.0)
    ask(machine, 1, now_s=9.0)
    assert machine.deadline_s == 35.0


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_each_request_comes_back_once_in_any_history(data: st.DataObject) -> None:
    machine, peer = ready()
    sent = 0
    waiting: list[tuple[ApiKey, int, int]] = []
    back: list[int] = []
    now_s = 1.0
    for _ in range(data.draw(st.integers(1, 30))):
        step = data.draw(st.sampled_from(["send", "send", "answer", "answer", "half", "garbage", "late", "lost"]))
        now_s += 1.0
        if machine.closed:
            break
        if step == "send":
            ask(machine, sent, now_s)
            sent += 1
            waiting += peer.requests()
        elif step in ("answer", "half") and waiting:
            frame = answer_bytes(*waiting.pop(0), METADATA)
            cut = data.draw(st.integers(1, len(frame) - 1)) if step == "half" else len(frame)
            machine.receive(frame[:cut], now_s)
            machine.receive(frame[cut:], now_s)
        elif step == "garbage":
            machine.receive(data.draw(st.binary(min_size=1, max_size=40)), now_s)
        elif step == "late":
            machine.expire(machine.deadline_s if waiting else now_s)
        elif step == "lost":
            machine.lost()
        back += numbers(machine)
    machine.close(DisconnectedError("the end"))
    back += numbers(machine)
    assert back == list(range(sent))


def log_in(machine: ConnectionMachine, peer: Peer, lifetime_ms: int, now_s: float) -> None:
    """The broker's side of PLAIN."""
    (handshake,) = peer.requests()
    assert handshake[:2] == (ApiKey.SASL_HANDSHAKE, 1)
    assert not machine.ready
    peer.answer(handshake, SaslHandshakeResponse(error_code=0, mechanisms=("PLAIN",)), now_s)
    (authenticate,) = peer.requests()
    assert authenticate[0] == ApiKey.SASL_AUTHENTICATE
    answer = SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b"", session_lifetime_ms=lifetime_ms)
    peer.answer(authenticate, answer, now_s)


def test_a_session_is_renewed_before_it_ends_and_requests_under_way_are_answered_meanwhile() -> None:
    machine, peer = ready(SaslCredentials("PLAIN", "alice", "secret").login())
    log_in(machine, peer, 100_000, 1.0)
    assert machine.is_ready(85.9)
    assert machine.login_until_s == 86.0
    ask(machine, 1, 85.9)
    ask(machine, 2, 85.9)
    early = peer.requests()
    assert not machine.is_ready(86.0)
    for request in early:
        peer.answer(request, METADATA, 86.5)
    assert numbers(machine) == [1, 2]
    log_in(machine, peer, 0, 87.0)
    assert machine.is_ready(10**9)
    assert machine.take_arrivals() == []


def test_a_refused_login_names_the_broker_and_its_reason() -> None:
    machine, peer = ready(SaslCredentials("PLAIN", "alice", "secret").login())
    (handshake,) = peer.requests()
    offer = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=("OAUTHBEARER",))
    peer.answer(handshake, offer)
    assert isinstance(machine.fault, AuthenticationError)
    assert machine.fault.message == "broker:9092: the broker does not offer PLAIN; it offers OAUTHBEARER"
    machine, peer = ready(SaslCredentials("PLAIN", "alice", "secret").login())
    (handshake,) = peer.requests()
    peer.answer(handshake, SaslHandshakeResponse(error_code=0, mechanisms=()))
    (authenticate,) = peer.requests()
    code = ErrorCode.SASL_AUTHENTICATION_FAILED
    peer.answer(authenticate, SaslAuthenticateResponse(error_code=code, error_message="no", auth_bytes=b""))
    assert isinstance(machine.fault, AuthenticationError)
    assert machine.fault.message == "broker:9092: no"
