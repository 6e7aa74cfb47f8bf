"""The metadata of topics, asked for without waiting.

`want` names a topic and returns at once; the broker's answer goes to the cluster, where `Cluster.known` finds it. What
a broker cannot say, and every fault on the way to it, is raised by the next `want` of that topic. A fault on the way is
raised for every topic until a short pause is over: a thousand partitions that want to know do not connect a thousand
times. Then it begins anew, with the next broker.
"""

from __future__ import annotations

import time

from ixion.clients.cluster import Cluster
from ixion.clients.connection import Connection
from ixion.clients.deadline import FIRST_PAUSE_S
from ixion.clients.faults import UnknownTopicError
from ixion.clients.metadata import read_metadata
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ixion.protocol.registry import ApiKey

OLDEST = 4  # the first version that can leave a missing topic uncreated


class Lookup:
    def __init__(self, cluster: Cluster, timeout_s: float) -> None:
        self._cluster = cluster
        self._timeout_s = timeout_s
        self._turn = 0  # of the addresses to try
        self._wanted: set[str] = set()
        self._asked: set[str] = set()
        self._since_s = 0.0  # when the connection was begun or the question asked
        self._faults: dict[str, KafkaError] = {}
        self._broken: KafkaError | None = None  # why the last broker could not be asked
        self._not_before_s = 0.0
        self.connection: Connection | None = None

    @property
    def is_busy(self) -> bool:
        return self.connection is not None and bool(self._wanted or self._asked)

    @property
    def patience_s(self) -> float:
        """How long the broker still has."""
        return self._timeout_s - (time.monotonic() - self._since_s)

    def want(self, name: str) -> None:
        fault = self._faults.pop(name, None)
        if fault is not None:
            raise fault
        if self._broken is not None:
            if time.monotonic() < self._not_before_s:
                raise self._broken
            self._broken = None
        if name not in self._asked:
            self._wanted.add(name)
            self._step()
            if self._broken is not None:
                raise self._broken

    def advance(self, events: int) -> None:
        """Call when the connection's socket is ready for that."""
        connection = self.connection
        assert connection is not None
        try:
            connection.advance(events)
            answer = connection.next_answer()
            if answer is not None:
                assert isinstance(answer, MetadataResponse)
                self._learn(answer)
        except KafkaError as fault:
            self._fail(fault)
        self._step()

    def expire(self) -> None:
        if self.is_busy and self.connection is not None and self.patience_s <= 0:
            self._fail(self.connection.late(self._timeout_s))

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None
        self._wanted.clear()
        self._asked.clear()

    def _step(self) -> None:
        """Connect, or ask on the connection that is ready."""
        if not self._wanted or self._asked:
            return
        try:
            if self.connection is None or self.connection.closed:
                addresses = self._cluster.addresses
                self._turn += 1
                self._since_s = time.monotonic()
                address = addresses[self._turn % len(addresses)]
                self.connection = Connection(
                    address, client_id=self._cluster.client_id, security=self._cluster.security
                )
            elif self.connection.ready:
                self._ask(self.connection)
        except KafkaError as fault:
            self._fail(fault)

    def _ask(self, connection: Connection) -> None:
        version = connection.version(ApiKey.METADATA, oldest=OLDEST)
        self._asked, self._wanted = self._wanted, set()
        self._since_s = time.monotonic()
        topics = tuple(MetadataRequestTopic(name=name) for name in sorted(self._asked))
        connection.send(ApiKey.METADATA, MetadataRequest(topics=topics, allow_auto_topic_creation=False), version)

    def _learn(self, answer: MetadataResponse) -> None:
        found = read_metadata(answer)
        self._cluster.learn(found)
        for name in self._asked - found.topics.keys():
            code = found.faults.get(name, ErrorCode.UNKNOWN_SERVER_ERROR)
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._faults[name] = UnknownTopicError(name, list(found.topics))
            else:
                self._faults[name] = KafkaError(code, f"topic {name!r}: {code.explanation}")
        self._asked = set()

    def _fail(self, fault: KafkaError) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None
        self._broken = fault
        self._not_before_s = time.monotonic() + FIRST_PAUSE_S
        self._asked, self._wanted = set(), set()
