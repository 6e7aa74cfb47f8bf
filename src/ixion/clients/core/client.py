"""Which broker gets a request, over which connection, and when it is retried: the part that all clients share.

    client = Client([Address("127.0.0.1", 9092)], ClientSettings(), random)
    machine = client.ready(node_id, now_s)        # None while it is being connected or may not be tried yet
    machine.send(ApiKey.PRODUCE, 12, request, pending, now_s)
    client.tick(now_s)                            # timeouts, metadata; completes what has arrived
    client.wake_s                                 # when to tick next, if no socket stirs before

The shell connects the machines of `take_opened`, feeds them and calls `tick` afterwards. The shell drops a machine when
it sees that it is closed. Each broker has at most one connection; ids below 0 are the bootstrap addresses, which are
used until the metadata has named brokers, and again when none of those can be reached (KIP-899, KIP-1102).

A broker that refuses our credentials, or shows an invalid certificate, does not count as a lost connection: `denied`
has the fault until a broker accepts us. Callers that wait for metadata get it at once, and the client sends no requests
of its own until a caller wants something again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ixion.clients.address import Address
from ixion.clients.core.backoff import Backoff, Random
from ixion.clients.core.cluster import ClusterState
from ixion.clients.core.connection import NEVER, SOFTWARE, ConnectionMachine, Outcome, Pending
from ixion.clients.core.security import PLAINTEXT, Security
from ixion.clients.faults import AuthenticationError, DisconnectedError, GarbledError, UnreachableError
from ixion.clients.log import log_missing, log_unanswered
from ixion.clients.metadata import ClusterMetadata, read_metadata
from ixion.clients.table import default
from ixion.language.model.errors import KafkaError
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ixion.language.protocol.registry import ApiKey

COORDINATOR: Final = 1 << 30  # plus a broker's id: a second connection to it, for requests that may wait long
NO_CREATION_FROM: Final = 4  # the first version of Metadata that can leave a missing topic uncreated


class ClientSettings(NamedTuple):
    """Under Kafka's names, in seconds."""

    client_id: str = SOFTWARE
    request_timeout_s: float = default("request_timeout_ms") / 1000
    connect_timeout_s: float = default("socket_connection_setup_timeout_ms") / 1000
    reconnect_backoff_s: float = default("reconnect_backoff_ms") / 1000
    reconnect_backoff_max_s: float = default("reconnect_backoff_max_ms") / 1000
    retry_backoff_s: float = default("retry_backoff_ms") / 1000
    retry_backoff_max_s: float = default("retry_backoff_max_ms") / 1000
    metadata_max_age_s: float = default("metadata_max_age_ms") / 1000
    metadata_max_idle_s: float = default("metadata_max_idle_ms") / 1000
    connections_max_idle_s: float = default("connections_max_idle_ms") / 1000
    creates_topics: bool = True  # whether the broker may create a missing topic
    security: Security = PLAINTEXT


class Client:
    def __init__(self, bootstrap: Sequence[Address], settings: ClientSettings, random: Random) -> None:
        self.settings = settings
        self.retry = Backoff(settings.retry_backoff_s, settings.retry_backoff_max_s, random)
        self.cluster = ClusterState(
            self.retry,
            max_age_s=settings.metadata_max_age_s,
            max_idle_s=settings.metadata_max_idle_s,
            creates_topics=settings.creates_topics,
        )
        self.fault: KafkaError | None = None  # why the last connection was lost
        self.denied: AuthenticationError | None = None  # why a broker refused our login, until one accepts it
        self.is_closed = False
        self._bootstrap = {-1 - number: address for number, address in enumerate(bootstrap)}
        self._random = random
        self._reconnect = Backoff(settings.reconnect_backoff_s, settings.reconnect_backoff_max_s, random)
        self._machines: dict[int, ConnectionMachine] = {}  # by node id
        self._opened: list[ConnectionMachine] = []
        self._failures: dict[int, int] = {}  # connections to a node that failed in a row
        self._not_before_s: dict[int, float] = {}  # when a node may be tried again
        self._introduced: dict[int, Address] = {}  # coordinators that the metadata may not have (yet, or any more)
        self._strangers: dict[int, KafkaError] = {}  # faults of bootstrap addresses where no broker has answered
        self.warns = False  # whether to log what makes callers wait; a client that fails at once need not
        self._has_warned = False  # that no broker has answered yet
        self._question: Question | None = None  # the metadata request in flight
        self._uses_bootstrap = True

    @property
    def has_failed_to_open(self) -> bool:
        """Whether a machine was closed before the shell had a socket for it."""
        return any(machine.closed for machine in self._machines.values())

    def take_opened(self) -> list[ConnectionMachine]:
        """Machines that the shell must connect."""
        found = self._opened
        self._opened = []
        return found

    @property
    def machines(self) -> list[ConnectionMachine]:
        return list(self._machines.values())

    @property
    def is_owed(self) -> bool:
        """Whether a request is unanswered."""
        return any(machine.in_flight for machine in self._machines.values())

    def ready(self, node_id: int, now_s: float) -> ConnectionMachine | None:
        """The connection to a broker, if it can take requests; else opens one, unless it must back off."""
        machine = self._machines.get(node_id)
        if machine is None:
            address = self._address(node_id)
            if address is not None and now_s >= self._not_before_s.get(node_id, 0.0) and not self.is_closed:
                self._open(node_id, address, now_s)
            return None
        return machine if machine.is_ready(now_s) else None

    def introduce(self, node_id: int, address: Address) -> None:
        """Learn the address of a coordinator from the answer that names it, as Java's client does: the metadata is of
        another moment."""
        self._introduced[node_id] = address

    def least_loaded(self, now_s: float) -> ConnectionMachine | None:
        """The ready broker with the fewest requests in flight. Opens a connection if there is none."""
        best: ConnectionMachine | None = None
        connecting = False
        for node_id, machine in self._machines.items():
            if node_id >= COORDINATOR:
                continue  # a rebalance may keep it busy
            if not machine.is_ready(now_s):
                connecting = True
            elif best is None or machine.in_flight < best.in_flight:
                best = machine
        if best is None and not connecting:
            self._open_some(now_s)
        return best

    def tick(self, now_s: float) -> None:
        """Deliver answers, expire requests, and request metadata that is wanted."""
        for node_id, machine in list(self._machines.items()):
            if machine.deadline_s <= now_s:
                machine.expire(now_s)  # the consumer's step 11.9
            if machine.fault is not None:
                self._leave(node_id, machine, now_s)  # the consumer's steps 11.2 and 11.5
            elif machine.ready:
                self._failures.pop(node_id, None)
                self._strangers.pop(node_id, None)
                self.denied = None
                idle_s = now_s - machine.last_used_s
                if idle_s > self.settings.connections_max_idle_s and machine.in_flight == 0:
                    machine.close(DisconnectedError("unused for connections.max.idle.ms"))
                    del self._machines[node_id]
            self._deliver(machine, now_s)  # the consumer's steps 11.1 and 11.11
        self._refresh(now_s)  # the producer's step 11.20

    @property
    def wake_s(self) -> float:
        """When `tick` has something to do even if no socket is ready."""
        wake_s = NEVER
        for machine in self._machines.values():
            wake_s = min(wake_s, machine.deadline_s)
        if self._question is None:
            wake_s = min(wake_s, max(self.cluster.due_s, self.some_ready_s))
        return wake_s

    @property
    def some_ready_s(self) -> float:
        """When `least_loaded` may find a broker; NEVER while one is being connected: its socket will wake us."""
        found_s = NEVER
        has_some = False
        for node_id, machine in self._machines.items():
            if node_id < COORDINATOR:
                has_some = True
                if machine.ready:
                    found_s = min(found_s, machine.throttled_until_s)
        return found_s if has_some else self._next_try_s()

    def may_try_s(self, node_id: int) -> float:
        """When an unreachable broker may be tried again; 0: at once."""
        return self._not_before_s.get(node_id, 0.0)

    def failures(self, node_id: int) -> int:
        """How many connections to that broker have failed in a row."""
        return self._failures.get(node_id, 0)

    def connection(self, node_id: int) -> ConnectionMachine | None:
        """The connection to a broker as it is, ready or not."""
        return self._machines.get(node_id)

    @property
    def nobody_answers(self) -> KafkaError | None:
        """The faults of all bootstrap addresses, if none has ever led to a broker."""
        if self.cluster.nodes or len(self._strangers) < len(self._bootstrap):
            return None
        if len(self._strangers) == 1:
            return self._strangers[-1]
        return UnreachableError("; ".join(self._strangers[node_id].message for node_id in self._bootstrap))

    def _warn(self) -> None:
        """Log once why no address leads to a broker: a caller that polls for ever would otherwise not notice."""
        fault = self.nobody_answers
        if fault is not None and self.warns and not self._has_warned:
            self._has_warned = True
            log_unanswered(fault)

    def try_again(self) -> None:
        """A caller wants something: forget refusals and unreachable addresses, which may work again."""
        self.denied = None
        self._strangers.clear()

    def is_connecting(self, node_id: int) -> bool:
        machine = self._machines.get(node_id)
        return machine is not None and not machine.ready

    def close(self, fault: KafkaError, now_s: float) -> None:
        """Close all connections; requests in flight complete with the fault."""
        self.is_closed = True
        machines, self._machines = self._machines, {}
        for machine in machines.values():
            machine.close(fault)
            self._deliver(machine, now_s)

    def drop_connections(self, fault: KafkaError, now_s: float) -> None:
        """Drop all connections; requests in flight complete with the fault."""
        for machine in self._machines.values():
            machine.close(fault)
        self.tick(now_s)
        self._question = None

    def _deliver(self, machine: ConnectionMachine, now_s: float) -> None:
        arrivals = machine.arrivals
        while arrivals:
            pending, outcome = arrivals.popleft()
            pending.complete(outcome, now_s)  # the producer's step 11.23

    def learn(self, found: ClusterMetadata, topics: Sequence[str], now_s: float, *, is_all: bool = False) -> None:
        """Take metadata that a caller has requested itself."""
        self._uses_bootstrap = False
        self.cluster.learn(found, topics, now_s, is_all=is_all)
        for name in self.cluster.unheard:
            if self.warns:
                log_missing(name)
        self.cluster.unheard.clear()

    def answered(self, question: Question, answer: MetadataResponse, now_s: float) -> None:
        self._question = None
        found = read_metadata(answer)
        if not found.nodes:
            self.cluster.failed(now_s)
            return
        self.learn(found, question.topics, now_s, is_all=question.is_all)

    def unanswered(self, now_s: float) -> None:
        self._question = None
        self.cluster.failed(now_s)

    def _refresh(self, now_s: float) -> None:
        if self._question is not None or self.is_closed or not self.cluster.is_due(now_s):
            return
        machine = self.least_loaded(now_s)
        if machine is None or now_s < machine.throttled_until_s:
            return
        names = self.cluster.wanted(now_s)
        creates = self.settings.creates_topics
        question = Question(self, names)
        topics = None if self.cluster.wants_all else tuple([MetadataRequestTopic(name=name) for name in names])
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=creates)
        try:
            version = machine.version(ApiKey.METADATA, oldest=1 if creates else NO_CREATION_FROM)
        except KafkaError as fault:
            self.fault = fault
            self.cluster.failed(now_s)
            return
        self._question = question
        machine.send(ApiKey.METADATA, version, request, question, now_s)

    def _address(self, node_id: int) -> Address | None:
        if node_id < 0:
            return self._bootstrap.get(node_id)
        node = self.cluster.nodes.get(node_id & ~COORDINATOR)
        return self._introduced.get(node_id & ~COORDINATOR) if node is None else node.address

    def _candidates(self) -> list[int]:
        return list(self._bootstrap) if self._uses_bootstrap else [*self.cluster.nodes]

    def _next_try_s(self) -> float:
        return min((self._not_before_s.get(node_id, 0.0) for node_id in self._candidates()), default=0.0)

    def _open_some(self, now_s: float) -> None:
        allowed = [node_id for node_id in self._candidates() if now_s >= self._not_before_s.get(node_id, 0.0)]
        if allowed:
            node_id = allowed[int(self._random() * len(allowed))]
            address = self._address(node_id)
            if address is not None and not self.is_closed:
                self._open(node_id, address, now_s)

    def _open(self, node_id: int, address: Address, now_s: float) -> None:
        settings = self.settings
        machine = ConnectionMachine(
            address,
            settings.client_id,
            now_s,
            connect_timeout_s=settings.connect_timeout_s,
            request_timeout_s=settings.request_timeout_s,
            login=settings.security.login(),
        )
        self._machines[node_id] = machine
        self._opened.append(machine)

    def _leave(self, node_id: int, machine: ConnectionMachine, now_s: float) -> None:
        """After a lost connection: back off, refresh the metadata, and use bootstrap addresses if no broker is left."""
        del self._machines[node_id]
        self.fault = machine.fault
        failures = self._failures.get(node_id, 0) + 1
        self._failures[node_id] = failures
        self._not_before_s[node_id] = now_s + self._reconnect.pause_s(failures)
        if node_id < 0 and isinstance(machine.fault, UnreachableError | GarbledError):
            self._strangers[node_id] = machine.fault
            self._warn()
        if isinstance(machine.fault, AuthenticationError):
            self.denied = machine.fault
            self.cluster.deny(machine.fault, now_s)
            return
        self.cluster.mark_stale()
        if not self._uses_bootstrap and all(self._failures.get(known, 0) > 0 for known in self.cluster.nodes):
            self._uses_bootstrap = True
            for known in self._bootstrap:
                self._not_before_s[known] = max(self._not_before_s.get(known, 0.0), self._not_before_s[node_id])


class Question(Pending):
    """Metadata about some topics."""

    def __init__(self, client: Client, topics: list[str]) -> None:
        self.client = client
        self.topics = topics
        self.is_all = client.cluster.wants_all

    def complete(self, outcome: Outcome, now_s: float) -> None:
        if isinstance(outcome, MetadataResponse):
            self.client.answered(self, outcome, now_s)
        else:
            self.client.unanswered(now_s)
