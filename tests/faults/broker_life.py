"""A life of a whole broker on a faulty disk, seen by a client: topics, records, offsets of a group, a transactional id.

The logs go through `FaultyDisk`, and so do the statements of the metadata store that change something. `Facts` are what
the client learned; `check` asks a later broker on a healthy disk about them.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.log.disk_guard import DiskGuard
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.broker.startup.parts import Options
from ixion.language.protocol.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from ixion.language.protocol.messages.k20_delete_topics import DeleteTopicsRequest
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdRequest
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.group_kit import commit_request
from tests.apis.raw import Raw
from tests.apis.txn_kit import produce
from tests.faults.disk import FaultyDisk
from tests.log.support import batch, stored

CHANGES = ("BEGIN", "COMMIT", "INSERT", "UPDATE", "DELETE")
SETTINGS = {"background.threads": 1, "num.recovery.threads.per.data.dir": 1, "log.cleaner.enable": False}


INIT = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1)


def find(raw: Raw, key: str, kind: int) -> bool:
    """As every client does first; it makes the internal topic."""
    answer = raw.ask(ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest(key=key, key_type=kind))
    return bool(answer.error_code == 0)


def until(done: Callable[[], bool]) -> None:
    """A coordinator reads its log again a second after it failed."""
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, "it does not go on by itself"
        time.sleep(0.02)


class GoneError(Exception):
    """The broker was killed, or has closed the connection."""


@dataclass(slots=True)
class Facts:
    topics: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)  # topics whose creation or deletion was not answered
    records: dict[str, list[bytes]] = field(default_factory=dict)
    under_way: tuple[str, bytes] | None = None
    offsets: list[int] = field(default_factory=list)  # the last acknowledged, and those that were not answered
    producer: tuple[int, int] = (-1, -1)


class Client(Raw):
    """Does not wait for a broker that was killed, nor believe what it says."""

    def __init__(self, bootstrap: str, disk: FaultyDisk) -> None:
        super().__init__(bootstrap)
        self.disk = disk
        self._socket.settimeout(0.05)

    def answer(self) -> Any:
        while True:
            answer = self._connection.next_answer()
            if self.disk.dead:
                raise GoneError
            if answer is not None:
                return answer.decode()
            try:
                data = self._socket.recv(65_536)
            except TimeoutError:
                continue
            if not data:
                raise GoneError
            self._connection.receive(data)

    def send(self, key: ApiKey, version: int, body: Struct) -> None:
        try:
            super().send(key, version, body)
        except OSError:
            raise GoneError from None


@contextmanager
def faulty(disk: FaultyDisk) -> Iterator[None]:
    """Brokers that are made meanwhile are on this disk."""

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, /, *given: Any) -> sqlite3.Cursor:
            work = partial(super().execute, sql, *given)
            if not sql.lstrip().startswith(CHANGES):
                return work()
            return disk.sql(sql.split()[0], work)

    def connect(file: str) -> sqlite3.Connection:
        return sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False, factory=Connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ixion.broker.metadata.sqlite_file._connect", connect)
        patch.setattr("ixion.testing.broker.Options", partial(Options, files=disk))
        yield


@dataclass(slots=True)
class Life:
    path: Path
    disk: FaultyDisk
    facts: Facts
    _client: Client | None = None

    @property
    def client(self) -> Client:
        assert self._client is not None
        return self._client

    def connect(self, broker: Broker) -> None:
        self.close()
        self._client = Client(broker.bootstrap, self.disk)

    def close(self) -> None:
        if self._client is not None:
            self._client.__exit__(None, None, None)
            self._client = None

    def create(self, name: str) -> bool:
        self.facts.doubtful.add(name)
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
        answer = self.client.ask(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=(topic,), timeout_ms=20_000))
        if answer.topics[0].error_code == 0:
            self.facts.topics.add(name)
            self.facts.doubtful.discard(name)
        return bool(answer.topics[0].error_code == 0)

    def delete(self, name: str) -> bool:
        self.facts.topics.discard(name)
        self.facts.doubtful.add(name)
        answer = self.client.ask(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=(name,), timeout_ms=20_000))
        if answer.responses[0].error_code == 0:
            self.facts.doubtful.discard(name)
            self.facts.deleted.add(name)
        return bool(answer.responses[0].error_code == 0)

    def produce(self, topic: str) -> bool:
        known = self.facts.records.setdefault(topic, [])
        value = b"%s %d" % (topic.encode(), len(known))
        self.facts.under_way = (topic, value)
        acked = produce(self.client, None, batch(value), topic=topic) == "NONE"
        if acked:
            known.append(value)
        self.facts.under_way = None
        return acked

    def commit(self) -> bool:
        offset = max(self.facts.offsets, default=9) + 1
        self.facts.offsets.append(offset)
        if not find(self.client, "g", 0):
            return False
        answer = self.client.ask(ApiKey.OFFSET_COMMIT, 7, commit_request("g", {("old", 0): offset}))
        if answer.topics[0].partitions[0].error_code:
            return False  # it may have been stored all the same
        self.facts.offsets[:] = [offset]
        return True

    def init(self) -> bool:
        if not find(self.client, "tx", 1):
            return False
        answer = self.client.ask(ApiKey.INIT_PRODUCER_ID, 4, INIT)
        if answer.error_code == 0:
            self.facts.producer = (answer.producer_id, answer.producer_epoch)
        return bool(answer.error_code == 0)

    def operations(self) -> list[Callable[[], bool]]:
        return [
            lambda: self.produce("old"),
            lambda: self.create("new"),
            lambda: self.produce("new"),
            self.commit,
            self.init,
            lambda: self.delete("brief"),
            lambda: self.produce("old"),
        ]

    def live(self, operations: list[Callable[[], bool]] | None = None, *, killed: bool = False) -> None:
        """Ends with the broker stopped, or killed if the disk is of no use any more."""
        broker = Broker(SETTINGS, data=self.path)
        try:
            broker.start()
        except Exception:
            return  # it said why not
        try:
            self.connect(broker)
            for operation in self.operations() if operations is None else operations:
                try:
                    operation()
                except GoneError:
                    if self.disk.dead:
                        return
                    self.connect(broker)
            if not self.disk.fault.kills and self.disk.struck and self.disk.passes:
                self.resume(broker)
        except (GoneError, ConnectionError):
            assert self.disk.dead or not self.disk.passes
        finally:
            self.close()
            if killed or (self.disk.struck and not self.disk.passes):
                broker.kill()
            else:
                broker.stop()

    def resume(self, broker: Broker) -> None:
        """There is room again: the broker finds out by itself, and everything works."""
        self.disk.heal()

        async def look(real: RealBroker) -> None:
            guard = DiskGuard(1, lambda _: (1 << 30, 1 << 40))
            for directory in real.parts.logs.directories:
                guard.check(directory.state)
            real.parts.logs.mend()
            await real.parts.sole_controller.bring_back()

        broker.call(look)
        until(lambda: self.produce("old"))
        if "new" in self.facts.topics or self.create("new"):
            until(lambda: self.produce("new"))
        until(self.commit)
        until(self.init)


def check(path: Path, facts: Facts) -> None:
    with Broker(SETTINGS, data=path) as broker, Raw(broker.bootstrap) as raw:

        async def look(real: RealBroker) -> dict[str, list[bytes]]:
            logs = real.parts.logs.logs
            topics = [name for name in real.parts.image.topics if not name.startswith("__")]
            return {name: [value for _, value in stored(logs[name, 0])] for name in topics}

        found = broker.call(look)
        assert facts.topics <= found.keys() <= facts.topics | facts.doubtful
        for topic, values in found.items():
            wishes = [facts.records.get(topic, [])]
            if facts.under_way is not None and facts.under_way[0] == topic:
                wishes.append([*wishes[0], facts.under_way[1]])
            assert values in wishes, (topic, values, wishes)
        assert find(raw, "g", 0)
        request = OffsetFetchRequest(
            group_id="g", topics=(OffsetFetchRequestTopic(name="old", partition_indexes=(0,)),)
        )
        answer = raw.ask(ApiKey.OFFSET_FETCH, 5, request)
        assert answer.topics[0].partitions[0].committed_offset in facts.offsets
        if facts.producer[0] >= 0:
            assert find(raw, "tx", 1)
            again = raw.ask(ApiKey.INIT_PRODUCER_ID, 4, INIT)
            assert again.error_code == 0
            assert (again.producer_id, again.producer_epoch) > facts.producer
