"""One connection to one broker, blocking: requests out, answers in, in order.

    with Connection(address, Deadline(5)) as broker:
        answer = broker.call(ApiKey.METADATA, MetadataRequest(topics=None), MetadataResponse, Deadline(5))

The first thing a connection does is to ask which versions the broker speaks (ApiVersions, newest version first; a
broker that is older says so and is asked again in its own). `send` and `receive` are the halves of `call` for those who
keep several requests under way. After any fault the connection is closed and stays so: what was asked and not
answered may or may not have happened.
"""

from __future__ import annotations

import os
import select
import socket
import time
from types import TracebackType
from typing import Final, TypeVar

from ixion.clients.address import Address
from ixion.clients.deadline import Deadline
from ixion.clients.faults import DisconnectedError, TimedOutError, UnreachableError, error_code
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.codec.sink import Buffer
from ixion.protocol.flaws import DecodeError
from ixion.protocol.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from ixion.protocol.notation import Struct
from ixion.protocol.registry import ApiKey
from ixion.wire import Answer, ClientConnection, WireError

READ_BYTES: Final = 1024 * 1024
JOIN_BELOW: Final = 64 * 1024  # bytes of a request that are cheaper to copy into one buffer than to send in pieces
# The largest answer to believe in. "HTTP" and a TLS alert, read as a size, are above it: who reaches one of those by
# mistake is told at once that this is no broker, and does not wait for a gigabyte.
ANSWER_BYTES: Final = 256 * 1024 * 1024
SOFTWARE: Final = "ixion"

T = TypeVar("T", bound=Struct)


class Connection:
    def __init__(self, address: Address, deadline: Deadline, *, client_id: str = SOFTWARE) -> None:
        self.address = address
        self._wire = ClientConnection(client_id, limit=ANSWER_BYTES)
        self._socket = connect(address, deadline)
        self._readable = select.poll()
        self._readable.register(self._socket, select.POLLIN)
        self.closed = False
        self.versions: dict[int, tuple[int, int]] = {}
        try:
            self._negotiate(deadline)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.closed = True
        self._socket.close()

    def fileno(self) -> int:
        """So that several connections can be polled together."""
        return self._socket.fileno()

    @property
    def in_flight(self) -> int:
        return self._wire.in_flight

    @property
    def waited_s(self) -> float:
        """How long the oldest request has been waiting for its answer, 0 if none is."""
        sent_ms = self._wire.oldest_sent_ms()
        return 0.0 if sent_ms is None else time.monotonic() - sent_ms / 1000

    def version(self, api: ApiKey, *, oldest: int = 0, newest: int = 1 << 15) -> int:
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

    def call(self, api: ApiKey, request: Struct, kind: type[T], deadline: Deadline, version: int | None = None) -> T:
        """Ask and wait for the answer. Only while nothing else is under way."""
        assert self._wire.in_flight == 0, "call() while answers are due"
        self.send(api, request, deadline, self.version(api) if version is None else version)
        return self.decode(self.receive(deadline), kind)

    def send(self, api: ApiKey, request: Struct, deadline: Deadline, version: int, *, answered: bool = True) -> int:
        """Send without waiting for the answer; the correlation id that it will carry."""
        now_ms = int(time.monotonic() * 1000)
        correlation_id, parts = self._wire.request(api, version, request, now_ms, answered=answered)
        try:
            self._socket.settimeout(max(deadline.left_s, 0.001))
            send_parts(self._socket, parts)
        except TimeoutError:
            raise self._over(TimedOutError(f"{self.address} took no request within {deadline.seconds:.3g} s")) from None
        except OSError as error:
            raise self._over(DisconnectedError(f"{self.address} closed the connection: {reason(error)}")) from None
        return correlation_id

    def receive(self, deadline: Deadline) -> Answer:
        """The next answer that is due."""
        while (answer := self.next_answer()) is None:
            if not self.wait(deadline.left_s):
                text = f"{self.address} gave no answer within {deadline.seconds:.3g} s"
                raise self._over(TimedOutError(text))
            self.read()
        return answer

    def wait(self, seconds: float) -> bool:
        """Whether there is something to read before so many seconds have passed."""
        return bool(self._readable.poll(max(seconds, 0) * 1000))

    def read(self) -> None:
        """Take in what has come; the socket must have something."""
        try:
            data = self._socket.recv(READ_BYTES)
        except OSError as error:
            raise self._over(DisconnectedError(f"{self.address} closed the connection: {reason(error)}")) from None
        if not data:
            unanswered = f" with {self.in_flight} of our requests unanswered" if self.in_flight else ""
            raise self._over(DisconnectedError(f"{self.address} closed the connection{unanswered}"))
        self._wire.receive(data)

    def next_answer(self) -> Answer | None:
        """An answer that has come whole, if there is one."""
        try:
            return self._wire.next_answer()
        except WireError as error:
            text = f"{self.address} does not answer as a Kafka broker would: {error}"
            raise self._over(DisconnectedError(text)) from None

    def decode(self, answer: Answer, kind: type[T]) -> T:
        try:
            body = answer.decode()
        except DecodeError as error:
            raise self._over(DisconnectedError(f"{self.address} sent an answer that cannot be read: {error}")) from None
        assert isinstance(body, kind)
        return body

    def _over(self, fault: KafkaError) -> KafkaError:
        self.close()
        return fault

    def _negotiate(self, deadline: Deadline) -> None:
        api = ApiKey.API_VERSIONS
        answer = self._ask_versions(api.newest, deadline)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            offered = [entry.max_version for entry in answer.api_keys if entry.api_key == api]
            answer = self._ask_versions(min([*offered, api.newest - 1]) if offered else 0, deadline)
        if answer.error_code != 0:
            raise KafkaError(error_code(answer.error_code), f"{self.address} does not say which versions it speaks")
        self.versions = {entry.api_key: (entry.min_version, entry.max_version) for entry in answer.api_keys}

    def _ask_versions(self, version: int, deadline: Deadline) -> ApiVersionsResponse:
        from ixion import __version__

        request = ApiVersionsRequest(client_software_name=SOFTWARE, client_software_version=__version__)
        return self.call(ApiKey.API_VERSIONS, request, ApiVersionsResponse, deadline, version)


def connect(address: Address, deadline: Deadline) -> socket.socket:
    try:
        opened = socket.create_connection(address, timeout=max(deadline.left_s, 0.001))
    except socket.gaierror as error:
        raise UnreachableError(f"there is no host {address.host!r} ({error.strerror})") from None
    except ConnectionRefusedError:
        raise UnreachableError(f"nobody listens on {address}; is the broker running?") from None
    except TimeoutError:
        raise UnreachableError(f"{address} did not accept a connection within {deadline.seconds:.3g} s") from None
    except OSError as error:
        raise UnreachableError(f"{address} cannot be reached: {reason(error)}") from None
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def send_parts(to: socket.socket, parts: list[Buffer]) -> None:
    if len(parts) == 1:
        to.sendall(parts[0])
    elif sum(map(len, parts)) < JOIN_BELOW:
        to.sendall(b"".join(parts))
    else:
        sent = to.sendmsg(parts)
        for part in parts:
            if sent < len(part):
                to.sendall(memoryview(part)[sent:])
                sent = 0
            else:
                sent -= len(part)


def reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)
