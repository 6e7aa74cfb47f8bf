"""One connection to one broker: requests out, answers in, in order.

    with Connection(address, Deadline(5)) as broker:
        answer = broker.call(ApiKey.METADATA, MetadataRequest(topics=None), MetadataResponse, Deadline(5))

The first thing a connection does is to ask which versions the broker speaks (ApiVersions, newest version first; a
broker that is older says so and is asked again in its own). Then it is `ready`.

The socket never blocks. `call` waits on it until a deadline; a caller that keeps several requests under way, or must
not wait, begins a connection without a deadline, polls `fileno()` for `events` and calls `advance`. After any fault the
connection is closed and stays so: a request that was sent and not answered may or may not have been carried out.
"""

from __future__ import annotations

import os
import select
import time
from collections import deque
from itertools import islice
from types import TracebackType
from typing import Final, TypeVar

from ixion.clients.address import Address
from ixion.clients.deadline import Deadline
from ixion.clients.dial import Dial
from ixion.clients.faults import DisconnectedError, GarbledError, TimedOutError, UnreachableError, error_code
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.codec.sink import Buffer
from ixion.protocol.flaws import DecodeError
from ixion.protocol.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from ixion.protocol.notation import Struct
from ixion.protocol.registry import ApiKey
from ixion.wire import Answer, ClientConnection, WireError

READ_BYTES: Final = 1024 * 1024
JOIN_BELOW: Final = 64 * 1024  # bytes of a request that are cheaper to copy into one buffer than to send in pieces
PIECES: Final = 64  # buffers per system call; the system's own limit is 1,024
# The largest answer to believe in. "HTTP" and a TLS alert, read as a size, are above it: a client that reaches such a
# server by mistake hears at once that this is no broker, and does not wait for a gigabyte.
ANSWER_BYTES: Final = 256 * 1024 * 1024
SOFTWARE: Final = "ixion"

T = TypeVar("T", bound=Struct)


class Connection:
    def __init__(self, address: Address, deadline: Deadline | None = None, *, client_id: str = SOFTWARE) -> None:
        """Ready when it returns, or KafkaError by the deadline. Without a deadline it is only begun."""
        self.address = address
        self.closed = False
        self.ready = False
        self.versions: dict[int, tuple[int, int]] = {}
        self._wire = ClientConnection(client_id, limit=ANSWER_BYTES)
        self._unsent: deque[memoryview] = deque()
        self._version = ApiKey.API_VERSIONS.newest  # that ApiVersions is asked in
        self._dial: Dial | None = Dial(address)
        self._socket = self._dial.socket
        if deadline is not None:
            try:
                self._finish(deadline)
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.closed = True
        self.ready = False
        self._unsent.clear()
        self._socket.close()

    def fileno(self) -> int:
        """So that several connections can be polled together; another one after `advance` while not `ready`."""
        return self._socket.fileno()

    @property
    def events(self) -> int:
        """What to poll the socket for."""
        if self._dial is not None:
            return select.POLLOUT
        return select.POLLIN | select.POLLOUT if self._unsent else select.POLLIN

    @property
    def has_unsent(self) -> bool:
        """Whether a part of what `send` was given has not reached the socket yet."""
        return bool(self._unsent)

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
        try:
            self.send(api, request, self.version(api) if version is None else version)
            return self.decode(self.receive(deadline), kind)
        except KeyboardInterrupt:
            self.close()  # the answer, if it comes, must not be taken for that of a later call
            raise

    def send(self, api: ApiKey, request: Struct, version: int, *, answered: bool = True) -> int:
        """Send without waiting, for the answer or for a slow reader; the correlation id that the answer will carry."""
        now_ms = int(time.monotonic() * 1000)
        correlation_id, parts = self._wire.request(api, version, request, now_ms, answered=answered)
        self._unsent.extend(map(memoryview, joined(parts)))
        self._write()
        return correlation_id

    def receive(self, deadline: Deadline) -> Answer:
        """The next answer that is due."""
        while (answer := self.next_answer()) is None:
            if not self._wait(deadline):
                raise self._over(self.late(deadline.seconds))
        return answer

    def advance(self, events: int) -> None:
        """Do what the socket is ready for. KafkaError if the connection is over."""
        if self._dial is not None:
            self._connect(self._dial)
            return
        if events & select.POLLOUT:
            self._write()
        if events & ~select.POLLOUT:
            self._read()
        if not self.ready:
            self._negotiate()

    def next_answer(self) -> Answer | None:
        """An answer that has come whole, if there is one."""
        try:
            return self._wire.next_answer()
        except WireError as error:
            text = f"{self.address} does not answer as a Kafka broker would: {error}"
            raise self._over(GarbledError(text)) from None

    def decode(self, answer: Answer, kind: type[T]) -> T:
        try:
            body = answer.decode()
        except DecodeError as error:
            raise self._over(GarbledError(f"{self.address} sent an answer that cannot be read: {error}")) from None
        assert isinstance(body, kind)
        return body

    def _over(self, fault: KafkaError) -> KafkaError:
        self.close()
        return fault

    def _finish(self, deadline: Deadline) -> None:
        """Wait until it is ready."""
        while not self.ready:
            if not self._wait(deadline):
                raise self._over(self.late(deadline.seconds))

    def late(self, seconds: float) -> KafkaError:
        """The fault of a broker that has let us wait for so long."""
        if self._dial is not None:
            return UnreachableError(f"{self.address} did not accept a connection within {seconds:.3g} s")
        done = "took no request" if self._unsent else "gave no answer"
        return TimedOutError(f"{self.address} {done} within {seconds:.3g} s")

    def _wait(self, deadline: Deadline) -> bool:
        """Advance as soon as the socket is ready; False if it is not before the deadline."""
        poll = select.poll()
        poll.register(self._socket, self.events)
        for _, events in poll.poll(max(deadline.left_s, 0) * 1000):
            self.advance(events)
            return True
        return False

    def _write(self) -> None:
        unsent = self._unsent
        while unsent:
            try:
                sent = self._socket.sendmsg(list(islice(unsent, PIECES)))
            except BlockingIOError:
                return
            except OSError as error:
                raise self._over(DisconnectedError(f"{self.address} closed the connection: {reason(error)}")) from None
            while unsent and sent >= len(unsent[0]):
                sent -= len(unsent.popleft())
            if sent:
                unsent[0] = unsent[0][sent:]

    def _read(self) -> None:
        try:
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise self._over(DisconnectedError(f"{self.address} closed the connection: {reason(error)}")) from None
        if not data:
            unanswered = f" with {self.in_flight} of our requests unanswered" if self.in_flight else ""
            raise self._over(DisconnectedError(f"{self.address} closed the connection{unanswered}"))
        self._wire.receive(data)

    def _connect(self, dial: Dial) -> None:
        try:
            is_connected = dial.advance()
        except UnreachableError as fault:
            raise self._over(fault) from None
        self._socket = dial.socket
        if is_connected:
            self._dial = None
            self._ask_versions()

    def _negotiate(self) -> None:
        answer = self.next_answer()
        if answer is None:
            return
        body = self.decode(answer, ApiVersionsResponse)
        api = ApiKey.API_VERSIONS
        if body.error_code == ErrorCode.UNSUPPORTED_VERSION and self._version > 0:
            offered = [entry.max_version for entry in body.api_keys if entry.api_key == api]
            self._version = max(min([*offered, self._version - 1]), 0) if offered else 0
            self._ask_versions()
            return
        if body.error_code != 0:
            text = f"{self.address} does not say which versions it speaks"
            raise self._over(KafkaError(error_code(body.error_code), text))
        self.versions = {entry.api_key: (entry.min_version, entry.max_version) for entry in body.api_keys}
        self.ready = True

    def _ask_versions(self) -> None:
        from ixion import __version__

        request = ApiVersionsRequest(client_software_name=SOFTWARE, client_software_version=__version__)
        self.send(ApiKey.API_VERSIONS, request, self._version)


def joined(parts: list[Buffer]) -> list[Buffer]:
    return [b"".join(parts)] if len(parts) > 1 and sum(map(len, parts)) < JOIN_BELOW else parts


def reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)
