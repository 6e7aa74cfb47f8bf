"""One connection to one broker, without a socket: bytes in, bytes and answers out.

    machine = ConnectionMachine(address, "me", now_s)
    machine.connected(now_s)                       # the shell's socket is up; `unsent` holds ApiVersions
    machine.receive(data, now_s)                   # the answer: `phase` is READY
    machine.send(ApiKey.METADATA, 12, request, pending, now_s)
    machine.receive(data, now_s)
    machine.arrivals                               # (pending, answer): each `pending` comes back exactly once

The shell writes `unsent` to its socket, calls `wrote` afterwards, and `lost` when the socket breaks. It calls `expire`
when `deadline_s` has passed. The first request of a connection asks for the broker's versions (ApiVersions, newest
version first; an older broker refuses it and is asked in its own version), the next ones are those of `Login`, if there
is one. Then the machine is READY and takes other requests.

A login may have a limited lifetime (KIP-368). From `login_until_s` on, the owner calls `log_in_again` before it sends
the next request: the machine takes no requests until that is done; requests in flight are answered meanwhile.

A step of a login may take some milliseconds of a processor (SCRAM). A shell on an event loop sets `defers`: then such
work is in `work`. The shell takes it, runs it on a thread, and calls `worked`.

Answers come in the order of the requests. After any fault the machine is CLOSED, `fault` says why, and every unanswered
request comes back with it: such a request may or may not have been carried out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from ixion._native import mypyc_attr
from ixion.clients.address import Address
from ixion.clients.faults import (
    AuthenticationError,
    DisconnectedError,
    GarbledError,
    TimedOutError,
    UnreachableError,
    error_code,
)
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.codec.sink import Buffer
from ixion.language.protocol.flaws import DecodeError
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.wire import ClientConnection, WireError

CONNECTING: Final = 0
NEGOTIATING: Final = 1
AUTHENTICATING: Final = 2
READY: Final = 3
CLOSED: Final = 4

# The first question costs a round trip more if it is in a version that the broker does not have. 5 is of Kafka 4.4.
ASKED_IN: Final = 4

# What a broker has answered so far. A listener with another security protocol than ours closes early, without a word.
NOTHING: Final = 0
VERSIONS: Final = 1
REQUESTS: Final = 2

NEVER: Final = float("inf")
JOIN_BELOW: Final = 64 * 1024  # bytes of a request below which one copied buffer is cheaper than several pieces
# The largest answer to accept. "HTTP" and a TLS alert, read as a size, are above it: a client that connects to such a
# server by mistake fails at once instead of waiting for a gigabyte.
ANSWER_BYTES: Final = 256 * 1024 * 1024
SOFTWARE: Final = "ixion"
ANY_VERSION: Final = 1 << 15
LOGIN_SHARE: Final = 0.85  # of a session's lifetime; the rest is for requests that were sent just before

Outcome = Struct | KafkaError | None  # None: written, and no answer is due


@mypyc_attr(allow_interpreted_subclasses=True)
class Pending:
    """A request in flight: `complete` is called once, with the answer or the fault that ended the connection."""

    def complete(self, outcome: Outcome, now_s: float) -> None:
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Login:
    """The SASL requests between ApiVersions and the first other request. One object for each connection."""

    lifetime_s: float = 0.0  # of the session that the last answer opened; 0: that of the connection

    def first(self, versions: dict[int, tuple[int, int]]) -> tuple[ApiKey, int, Struct] | None:
        """The first request and its version, or None if the broker may be used at once."""
        raise NotImplementedError

    def prepare(self, answer: Struct) -> Callable[[], object] | None:  # noqa: ARG002
        """Long work that `next` needs, to be done before on any thread."""
        return None

    def next(self, answer: Struct) -> tuple[ApiKey, int, Struct] | None:
        """The request after that answer, or None when the login is done. KafkaError if the broker refuses."""
        raise NotImplementedError


class Own(Pending):
    """A request of the machine itself, or of an owner that takes `arrivals` by itself."""

    def complete(self, outcome: Outcome, now_s: float) -> None:
        pass


class LoginStep(Own):
    """A request of the login."""


class ConnectionMachine:
    def __init__(
        self,
        address: Address,
        client_id: str | None,
        now_s: float,
        *,
        connect_timeout_s: float = 10.0,
        request_timeout_s: float = 30.0,
        login: Login | None = None,
    ) -> None:
        self.address = address
        self.phase = CONNECTING
        self.fault: KafkaError | None = None
        self.versions: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}  # finalized, by name
        self.unsent: deque[memoryview] = deque()
        self.arrivals: deque[tuple[Pending, Outcome]] = deque()
        self.throttled_until_s = 0.0  # send nothing before (KIP-219)
        self.login_until_s = NEVER  # when `log_in_again` is due
        self.defers = False
        self.work: Callable[[], object] | None = None
        self._worked_on: Struct | None = None  # the answer that the login goes on with after `work`
        self.last_used_s = now_s
        self._begun_s = now_s
        self._connect_timeout_s = connect_timeout_s
        self._request_timeout_s = request_timeout_s
        self._login = login
        self._wire = ClientConnection(client_id, limit=ANSWER_BYTES)
        self._pending: deque[tuple[Pending, float]] = deque()  # with when it was sent
        self._unanswered: deque[tuple[Pending, float]] = deque()  # of requests that get no answer, until written
        self._version = ASKED_IN  # of ApiVersions
        self._has_answered = NOTHING

    @property
    def ready(self) -> bool:
        return self.phase == READY

    def is_ready(self, now_s: float) -> bool:
        """Whether it takes requests. If its session is about to end, it logs in again first."""
        if self.phase == READY and now_s >= self.login_until_s:
            self.log_in_again(now_s)
        return self.phase == READY

    @property
    def closed(self) -> bool:
        return self.phase == CLOSED

    @property
    def in_flight(self) -> int:
        return len(self._pending) + len(self._unanswered)

    def may_send(self, limit: int, now_s: float) -> bool:
        """Whether it takes one more request: ready, not throttled, and fewer than `limit` in flight."""
        return self.phase == READY and self.in_flight < limit and now_s >= self.throttled_until_s

    @property
    def deadline_s(self) -> float:
        """When the next timeout of the broker is."""
        if self.phase == CLOSED:
            return NEVER
        if self.phase == CONNECTING:
            return self._begun_s + self._connect_timeout_s
        return self.oldest_s + self._request_timeout_s

    @property
    def oldest_s(self) -> float:
        """When the oldest unanswered request was sent; NEVER if there is none."""
        oldest_s = self._pending[0][1] if self._pending else NEVER
        return min(oldest_s, self._unanswered[0][1]) if self._unanswered else oldest_s

    def version(self, api: ApiKey, *, oldest: int = 0, newest: int = ANY_VERSION) -> int:
        """The newest version that both sides speak, within what the caller can work with."""
        theirs = self.versions.get(api)
        if theirs is None:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"the broker at {self.address} does not offer {api.title}")
        low, high = max(theirs[0], api.oldest, oldest), min(theirs[1], api.newest, newest)
        if low > high:
            wanted = f"{max(api.oldest, oldest)} to {min(api.newest, newest)}"
            text = f"{api.title} is spoken by {self.address} in versions {theirs[0]} to {theirs[1]}, by us in {wanted}"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
        return high

    def connected(self, now_s: float) -> None:
        """The shell's socket is connected."""
        if self.phase == CONNECTING:
            self.phase = NEGOTIATING
            self._ask_versions(now_s)

    def send(
        self,
        api: ApiKey,
        version: int,
        request: Struct,
        pending: Pending,
        now_s: float,
        *,
        answered: bool = True,
        held_s: float = 0.0,
    ) -> int:
        """Queue a request; returns its correlation id. `answered=False` for a Produce with acks=0: it is done when
        written. `held_s` is how long the broker may hold it before its timeout begins (a fetch that waits, a join)."""
        correlation_id, parts = self._wire.request(api, version, request, answered=answered)
        (self._pending if answered else self._unanswered).append((pending, now_s + held_s))  # the producer's step 11.17
        for part in joined(parts):
            self.unsent.append(memoryview(part))  # the producer's step 11.18
        self.last_used_s = now_s
        return correlation_id

    def wrote(self, now_s: float) -> None:
        """The shell has written a part of `unsent` (and taken it out)."""
        if not self.unsent:
            while self._unanswered:
                self.arrivals.append((self._unanswered.popleft()[0], None))
            self.last_used_s = now_s

    def receive(self, data: bytes, now_s: float) -> None:
        """Bytes from the socket; what they answer is in `arrivals` afterwards."""
        if self.phase == CLOSED:
            return
        self._wire.receive(data)
        self._take_answers(now_s)

    def receive_from(self, buffer: memoryview, now_s: float) -> None:
        """Like `receive`, from a buffer that the shell uses again: a large answer is copied once less."""
        if self.phase == CLOSED:
            return
        self._wire.receive_from(buffer)  # the producer's step 11.21
        self._take_answers(now_s)

    @property
    def room(self) -> memoryview | None:
        """The buffer for the rest of a large answer, for a shell that can read into it and then calls `received`."""
        return self._wire.room

    def received(self, count: int, now_s: float) -> None:
        """`count` bytes were read into `room`."""
        if self.phase == CLOSED:
            return
        self._wire.received(count)
        self._take_answers(now_s)

    def worked(self, now_s: float) -> None:
        """The deferred work is done."""
        answer, self._worked_on = self._worked_on, None
        if answer is not None and self.phase == AUTHENTICATING:
            self._take_answers(now_s, answer)

    def _take_answers(self, now_s: float, of_login: Struct | None = None) -> None:
        """`of_login` is the answer with which the login continues first."""
        self.last_used_s = now_s
        try:
            if of_login is not None:
                assert self._login is not None
                self._step_login(self._login.next(of_login), now_s)
            while self.phase != CLOSED and (answer := self._wire.next_answer()) is not None:
                self._take(answer.decode(), now_s)  # the producer's step 11.22
        except WireError as wire_error:
            self.close(GarbledError(f"{self.address} does not answer as a Kafka broker would: {wire_error}"))
        except DecodeError as decode_error:
            self.close(GarbledError(f"{self.address} sent an answer that cannot be read: {decode_error}"))
        except AuthenticationError as refusal:
            self.close(AuthenticationError(f"{self.address}: {refusal.message}", refusal.code))
        except KafkaError as fault:
            self.close(fault)

    def lost(self, reason: str = "") -> None:
        """The socket is closed or broken."""
        because = f": {reason}" if reason else ""
        if self.phase == CONNECTING:
            self.close(UnreachableError(f"{self.address} cannot be reached{because}"))
        elif self._has_answered == NOTHING and self._pending:
            hint = "" if reason else "; does that listener require TLS (security_protocol)?"
            self.close(GarbledError(f"{self.address} closed the connection before its first answer{because}{hint}"))
        elif self._has_answered == VERSIONS and self._pending and self._login is None:
            hint = "does that listener require a login (security_protocol, sasl_mechanism)?"
            self.close(GarbledError(f"{self.address} closed the connection at our first request; {hint}"))
        elif not reason and self._pending:
            count = len(self._pending)
            text = f"{self.address} closed the connection with {count} of our requests unanswered"
            self.close(DisconnectedError(text))
        else:
            self.close(DisconnectedError(f"{self.address} closed the connection{because}"))

    def expire(self, now_s: float) -> None:
        """Close if the broker has exceeded its timeout."""
        if self.phase != CLOSED and now_s >= self.deadline_s:
            patience_s = self._connect_timeout_s if self.phase == CONNECTING else self._request_timeout_s
            self.close(self.late(patience_s))

    def late(self, seconds: float) -> KafkaError:
        """The fault of a broker that did not answer for that long."""
        if self.phase == CONNECTING:
            return UnreachableError(f"{self.address} did not accept a connection within {seconds:.3g} s")
        done = "took no request" if self.unsent else "gave no answer"
        return TimedOutError(f"{self.address} {done} within {seconds:.3g} s")

    def close(self, fault: KafkaError) -> None:
        """Close; requests in flight come back with the fault, in the order in which they were sent."""
        if self.phase == CLOSED:
            return
        self.phase = CLOSED
        self.fault = fault
        self.unsent.clear()
        for pending, _ in self._pending:
            self.arrivals.append((pending, fault))
        for pending, _ in self._unanswered:
            self.arrivals.append((pending, fault))
        self._pending.clear()
        self._unanswered.clear()

    def take_arrivals(self) -> list[tuple[Pending, Outcome]]:
        found = list(self.arrivals)
        self.arrivals.clear()
        return found

    def _take(self, body: Struct, now_s: float) -> None:
        if self.phase == NEGOTIATING:
            self._pending.popleft()
            self._negotiate(body, now_s)
        elif self.phase == AUTHENTICATING and isinstance(self._pending[0][0], LoginStep):
            self._pending.popleft()
            assert self._login is not None
            work = self._login.prepare(body) if self.defers else None
            if work is None:
                self._step_login(self._login.next(body), now_s)
            else:
                self.work = work
                self._worked_on = body
        else:
            throttle_ms = getattr(body, "throttle_time_ms", 0)
            if throttle_ms > 0:
                self.throttled_until_s = now_s + throttle_ms / 1000
            self._has_answered = REQUESTS
            self.arrivals.append((self._pending.popleft()[0], body))  # the producer's step 11.24

    def _negotiate(self, body: Struct, now_s: float) -> None:
        assert isinstance(body, ApiVersionsResponse)
        api = ApiKey.API_VERSIONS
        if body.error_code == ErrorCode.UNSUPPORTED_VERSION and self._version > 0:
            offered = [entry.max_version for entry in body.api_keys if entry.api_key == api]
            self._version = max(min([*offered, self._version - 1]), 0) if offered else 0
            self._ask_versions(now_s)
            return
        if body.error_code != 0:
            text = f"{self.address} does not say which versions it speaks"
            raise KafkaError(error_code(body.error_code), text)
        self.versions = {entry.api_key: (entry.min_version, entry.max_version) for entry in body.api_keys}
        self.features = {feature.name: feature.max_version_level for feature in body.finalized_features}
        self._has_answered = VERSIONS
        if self._login is None:
            self.phase = READY
        else:
            self._log_in(self._login, now_s)

    def log_in_again(self, now_s: float) -> None:
        """Log in again on the same connection, before the session ends. Does nothing unless READY."""
        if self.phase == READY and self._login is not None:
            self._log_in(self._login, now_s)

    def _log_in(self, login: Login, now_s: float) -> None:
        self.phase = AUTHENTICATING
        self._step_login(login.first(self.versions), now_s)

    def _step_login(self, step: tuple[ApiKey, int, Struct] | None, now_s: float) -> None:
        if step is not None:
            self.send(step[0], step[1], step[2], LoginStep(), now_s)
            return
        self.phase = READY
        assert self._login is not None
        lifetime_s = self._login.lifetime_s
        self.login_until_s = now_s + lifetime_s * LOGIN_SHARE if lifetime_s > 0 else NEVER

    def _ask_versions(self, now_s: float) -> None:
        from ixion import __version__

        request = ApiVersionsRequest(client_software_name=SOFTWARE, client_software_version=__version__)
        self.send(ApiKey.API_VERSIONS, self._version, request, Own(), now_s)


def joined(parts: list[Buffer]) -> list[Buffer]:
    return [b"".join(parts)] if len(parts) > 1 and sum(map(len, parts)) < JOIN_BELOW else parts
