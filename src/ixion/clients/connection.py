"""One connection to one broker, waited for: requests out, answers in, in order.

    with Connection(address, Deadline(5)) as broker:
        answer = broker.call(ApiKey.METADATA, MetadataRequest(topics=None), MetadataResponse, Deadline(5))

A thin shell around `core.connection`: `call` waits on the socket until a deadline; a caller that keeps several requests
under way, or must not wait, begins a connection without a deadline, polls `fileno()` for `events` and calls `advance`.
After any fault the connection is closed and stays so: a request that was sent and not answered may or may not have been
carried out.
"""

from __future__ import annotations

import select
import time
from collections import deque
from types import TracebackType
from typing import TypeVar

from ixion.clients.address import Address
from ixion.clients.core.connection import ANY_VERSION, NEVER, SOFTWARE, ConnectionMachine, Own
from ixion.clients.core.security import PLAINTEXT, Security
from ixion.clients.deadline import Deadline
from ixion.clients.faults import DisconnectedError
from ixion.clients.line import open_line
from ixion.model.errors import KafkaError
from ixion.protocol.notation import Struct
from ixion.protocol.registry import ApiKey

T = TypeVar("T", bound=Struct)


class Connection:
    def __init__(
        self,
        address: Address,
        deadline: Deadline | None = None,
        *,
        client_id: str = SOFTWARE,
        security: Security = PLAINTEXT,
    ) -> None:
        """Ready when it returns, or KafkaError by the deadline. Without a deadline it is only begun."""
        self.address = address
        # The callers' deadlines bound every wait, so the machine needs none of its own.
        self._machine = ConnectionMachine(
            address,
            client_id,
            time.monotonic(),
            connect_timeout_s=NEVER,
            request_timeout_s=NEVER,
            login=security.login(),
        )
        self._line = open_line(self._machine, security)
        self._answers: deque[Struct] = deque()
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
        self._machine.close(DisconnectedError(f"the connection to {self.address} was closed by this client"))
        self._line.close()

    @property
    def closed(self) -> bool:
        return self._machine.closed

    @property
    def ready(self) -> bool:
        return self._machine.ready

    @property
    def versions(self) -> dict[int, tuple[int, int]]:
        return self._machine.versions

    def fileno(self) -> int:
        """So that several connections can be polled together; another one after `advance` while not `ready`."""
        return self._line.fileno()

    @property
    def events(self) -> int:
        """What to poll the socket for."""
        return self._line.events

    @property
    def has_unsent(self) -> bool:
        """Whether a part of what `send` was given has not reached the socket yet."""
        return bool(self._machine.unsent)

    @property
    def in_flight(self) -> int:
        return self._machine.in_flight

    @property
    def waited_s(self) -> float:
        """How long the oldest request has been waiting for its answer, 0 if none is."""
        return max(time.monotonic() - self._machine.oldest_s, 0.0)

    def version(self, api: ApiKey, *, oldest: int = 0, newest: int = ANY_VERSION) -> int:
        """The newest version that both sides speak, within what the caller can work with."""
        return self._machine.version(api, oldest=oldest, newest=newest)

    def call(self, api: ApiKey, request: Struct, kind: type[T], deadline: Deadline, version: int | None = None) -> T:
        """Ask and wait for the answer. Only while nothing else is under way."""
        assert self._machine.in_flight == 0, "call() while answers are due"
        try:
            self.send(api, request, self.version(api) if version is None else version)
            answer = self.receive(deadline)
        except KeyboardInterrupt:
            self.close()  # the answer, if it comes, must not be taken for that of a later call
            raise
        assert isinstance(answer, kind)
        return answer

    def send(self, api: ApiKey, request: Struct, version: int, *, answered: bool = True) -> int:
        """Send without waiting, for the answer or for a slow reader; the correlation id that the answer will carry."""
        now_s = time.monotonic()
        if now_s >= self._machine.login_until_s:
            raise self._over(DisconnectedError(f"the session on {self.address} has ended; a new connection is needed"))
        correlation_id = self._machine.send(api, version, request, Own(), now_s, answered=answered)
        self._line.write(now_s)
        self._check()
        return correlation_id

    def receive(self, deadline: Deadline) -> Struct:
        """The next answer that is due."""
        while (answer := self.next_answer()) is None:
            if not self._wait(deadline):
                raise self._over(self.late(deadline.seconds))
        return answer

    def advance(self, events: int) -> None:
        """Do what the socket is ready for. KafkaError if the connection is over and all answers were taken."""
        self._line.advance(events, time.monotonic())
        self._check()

    def next_answer(self) -> Struct | None:
        """An answer that has come whole, if there is one."""
        if self._answers:
            return self._answers.popleft()
        if self._machine.fault is not None:
            raise self._machine.fault
        return None

    def late(self, seconds: float) -> KafkaError:
        """The fault of a broker that has let us wait for so long."""
        return self._machine.late(seconds)

    def _check(self) -> None:
        for _, outcome in self._machine.take_arrivals():
            if isinstance(outcome, Struct):
                self._answers.append(outcome)
        if self._machine.fault is not None:
            self._line.close()
            if not self._answers:
                raise self._machine.fault

    def _over(self, fault: KafkaError) -> KafkaError:
        self._machine.close(fault)
        self._line.close()
        return fault

    def _finish(self, deadline: Deadline) -> None:
        """Wait until it is ready."""
        while not self.ready:
            if not self._wait(deadline):
                raise self._over(self.late(deadline.seconds))

    def _wait(self, deadline: Deadline) -> bool:
        """Advance as soon as the socket is ready; False if it is not before the deadline."""
        poll = select.poll()
        poll.register(self._line, self.events)
        for _, events in poll.poll(max(deadline.left_s, 0) * 1000):
            self.advance(events)
            return True
        return False
