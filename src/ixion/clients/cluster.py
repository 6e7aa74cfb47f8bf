"""A cluster as its client knows it: where to begin, which broker does what, and one connection to each.

    with Cluster("127.0.0.1:9092") as cluster:
        cluster.topic("orders").partitions

Three kinds of fault, three answers. Nobody answers at any bootstrap address: said at once, because the address is most
likely wrong. A broker was there and is gone, a partition has moved, a coordinator is loading: asked again with pauses
that double, after a fresh look at the metadata where that is what is stale, until the caller's time is up. Anything
else is the caller's to mend and is raised as it came.

Not thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, TypeVar

from ixion.clients.address import Address, parse_bootstrap
from ixion.clients.connection import Connection
from ixion.clients.core.connection import SOFTWARE
from ixion.clients.core.security import PLAINTEXT, Security
from ixion.clients.deadline import Deadline, Pauses
from ixion.clients.faults import DisconnectedError, GarbledError, TimedOutError, UnknownTopicError, UnreachableError
from ixion.clients.metadata import ClusterMetadata, Node, Topic, read_metadata
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ixion.protocol.registry import ApiKey

T = TypeVar("T")

TIMEOUT_S: Final = 30.0
CONNECT_S: Final = 10.0  # for one address; the next one may be alive


class Cluster:
    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = SOFTWARE,
        timeout_s: float = TIMEOUT_S,
        security: Security = PLAINTEXT,
    ) -> None:
        """`timeout_s` is for everything that is not given a deadline of its own. ValueError for a bad address."""
        self.bootstrap = parse_bootstrap(bootstrap)
        self.client_id = client_id
        self.security = security
        self.timeout_s = timeout_s
        self._first: Connection | None = None  # to a bootstrap address
        self._connections: dict[int, Connection] = {}  # by node id
        self._nodes: dict[int, Node] = {}
        self._topics: dict[str, Topic] = {}  # as last heard
        self._controller = -1

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        for connection in [*self._connections.values(), self._first]:
            if connection is not None:
                connection.close()
        self._first = None
        self._connections.clear()

    @property
    def addresses(self) -> list[Address]:
        """Where a broker may answer: the bootstrap addresses, then the brokers that the metadata has named."""
        return list(dict.fromkeys([*self.bootstrap, *(node.address for node in self._nodes.values())]))

    def deadline(self) -> Deadline:
        return Deadline(self.timeout_s)

    def attempt(self, what: str, act: Callable[[Deadline], T], deadline: Deadline | None = None) -> T:
        """Act until it succeeds, fails for good, or the time is up; `what` is for the message then."""
        deadline = deadline or self.deadline()
        pauses = Pauses()
        reason: KafkaError | None = None
        while True:
            try:
                return act(deadline)
            except KafkaError as error:
                is_away = isinstance(error, UnreachableError)
                is_stranger = not self._nodes and isinstance(error, GarbledError)  # most likely no broker at all
                may_pass = error.code.retriable or (is_away and self._nodes)
                if isinstance(error, UnknownTopicError) or is_stranger or not may_pass:
                    raise
                if error.code.stale_metadata or is_away:
                    self.forget()
                if reason is None or not isinstance(error, TimedOutError):
                    reason = error  # that the time is up says less than what it was spent on
                if deadline.passed:
                    text = f"{what}: not done within {deadline.seconds:.3g} s; {reason.message}"
                    raise TimedOutError(text) from error
            pauses.sleep(deadline)

    def any(self, deadline: Deadline) -> Connection:
        """Some broker, whichever: one that we talk to already, or the first that answers."""
        for connection in [*self._connections.values(), self._first]:
            if connection is not None and not connection.closed:
                return connection
        faults = []
        for address in self.addresses:
            try:
                self._first = Connection(
                    address, Deadline(min(CONNECT_S, deadline.left_s)), client_id=self.client_id, security=self.security
                )
            except (UnreachableError, DisconnectedError, TimedOutError) as error:
                faults.append(error)
            else:
                return self._first
        if len(faults) == 1:
            raise faults[0]
        raise UnreachableError("; ".join(error.message for error in faults))

    def node(self, node_id: int, deadline: Deadline) -> Connection:
        """The broker with that id, which the metadata has named."""
        connection = self._connections.get(node_id)
        if connection is None or connection.closed:
            connection = Connection(self._address(node_id), deadline, client_id=self.client_id, security=self.security)
            self._connections[node_id] = connection
        return connection

    def begin(self, node_id: int) -> Connection:
        """A new connection to that broker, not ready yet, for the caller alone."""
        return Connection(self._address(node_id), client_id=self.client_id, security=self.security)

    def controller(self, deadline: Deadline) -> Connection:
        if self._controller not in self._nodes:
            self.metadata((), deadline)
        if self._controller not in self._nodes:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the cluster has no controller at the moment")
        return self.node(self._controller, deadline)

    def nodes(self, deadline: Deadline) -> tuple[Node, ...]:
        if not self._nodes:
            self.metadata((), deadline)
        return tuple(self._nodes.values())

    def metadata(self, topics: Iterable[str] | None, deadline: Deadline, *, create: bool = False) -> ClusterMetadata:
        """Fresh from a broker; all topics if `topics` is None. `create` lets the broker make what is missing."""
        wanted = None if topics is None else tuple(MetadataRequestTopic(name=name) for name in topics)
        broker = self.any(deadline)
        version = broker.version(ApiKey.METADATA, oldest=1 if create else 4)
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
        found = read_metadata(broker.call(ApiKey.METADATA, request, MetadataResponse, deadline, version))
        self.learn(found)
        return found

    def learn(self, found: ClusterMetadata) -> None:
        """Keep what a broker has said."""
        self._nodes = found.nodes
        self._controller = found.controller
        self._topics.update(found.topics)

    def known(self, name: str) -> Topic | None:
        """What was last heard of a topic; no broker is asked."""
        return self._topics.get(name)

    def topic(self, name: str, deadline: Deadline | None = None, *, create: bool = False) -> Topic:
        """What is known of a topic; a broker is asked the first time, and after `forget`."""
        known = self._topics.get(name)
        return known or self.attempt(f"topic {name!r}", lambda within: self._look_up(name, create, within), deadline)

    def forget(self) -> None:
        """What was known of topics and controller is no longer true: ask again when it is next needed."""
        self._topics.clear()
        self._controller = -1

    def _address(self, node_id: int) -> Address:
        node = self._nodes.get(node_id)
        if node is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"broker {node_id} is not up")
        return node.address

    def _look_up(self, name: str, create: bool, deadline: Deadline) -> Topic:
        found = self.metadata([name], deadline, create=create)
        code = found.faults.get(name)
        if code is None and name in found.topics:
            return found.topics[name]
        if code is None or (code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not create):
            raise UnknownTopicError(name, list(self.metadata(None, deadline).topics))
        raise KafkaError(code, f"topic {name!r}: {code.explanation}")
