"""A group that goes from one client to another, member by member, while records come: none is left out.

On ixion, alone and as a cluster of three, and on Apache Kafka 3.9.1 and 4.3.0 with the compiled package only (a JVM
takes a while). The records are transactions of our producer, committed and aborted in turn, so every client has read
what our transactions leave to be read.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from devtools.parts import need
from ixion.clients import Admin, Producer, TopicPartition
from ixion.clients.admin.topics import NewTopic
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker, Cluster
from tests.apis.raw import Raw
from tests.clients.asking import end_offsets, fetch_offsets
from tests.clients.consumer.peers import CLIENTS, KAFKA, Peer
from tests.servers import ApacheKafka

pytestmark = [
    pytest.mark.timeout(300),
    # kafka-python leaves a socket behind if it is closed while it connects; `roll` collects it.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PARTITIONS = 4
WAIT_S = 120.0


@pytest.fixture(scope="module")
def our_own() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap


@pytest.fixture(scope="module")
def three() -> Iterator[str]:
    with Cluster(3) as cluster:
        yield cluster.bootstrap


def real_kafka(request: pytest.FixtureRequest, version: str) -> str:
    if os.environ.get("IXION_EXPECT") == "interpreted":
        pytest.skip("runs with the compiled package, see the module")
    servers: ApacheKafka = request.getfixturevalue("apache_kafka")
    return servers(version).bootstrap


@pytest.fixture(params=["our_own", "three", "3.9.1", "4.3.0"], ids=["ixion", "cluster", "kafka-3.9.1", "kafka-4.3.0"])
def bootstrap(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    found: str = real_kafka(request, name) if name[0].isdigit() else request.getfixturevalue(name)
    return found


def await_that(is_so: Callable[[], bool], what: Callable[[], str]) -> None:
    end_s = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end_s, what()
        threading.Event().wait(0.02)


def knows(address: str, topic: str) -> bool:
    """Whether this broker knows the leaders of the topic. kafka-python assigns nothing if the broker that it asks does
    not, and asks again minutes later."""
    with Raw(address) as client:
        answer = client.ask(ApiKey.METADATA, 9, MetadataRequest(topics=(MetadataRequestTopic(name=topic),)))
    partitions = answer.topics[0].partitions
    return len(partitions) == PARTITIONS and all(each.error_code == 0 for each in partitions)


class Records:
    """What our transactional producer has sent: each step a transaction of every kind."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.committed: set[bytes] = set()
        self._topic = topic
        self._producer = Producer(bootstrap, transactional_id=f"{topic}-writer")
        self._producer.init_transactions()
        self._step = 0

    def add(self) -> None:
        self._step += 1
        for fate in ("dropped", "kept"):
            self._producer.begin_transaction()
            values = [b"%s-%d-%d" % (fate.encode(), self._step, number) for number in range(4 * PARTITIONS)]
            for number, value in enumerate(values):
                self._producer.send(self._topic, value, partition=number % PARTITIONS)
            if fate == "kept":
                self._producer.commit_transaction()
                self.committed.update(values)
            else:
                self._producer.flush()
                self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close()


def roll(bootstrap: str, topic: str, names: list[str]) -> None:
    """Begin with the first client; each of the others joins, and the one before it leaves."""
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS)]).check()
    for address in bootstrap.split(","):
        await_that(lambda address=address: knows(address, topic), lambda: f"a broker does not know {topic}")  # type: ignore[misc]
    records = Records(bootstrap, topic)
    everybody: list[Peer] = []

    def missing() -> set[bytes]:
        return records.committed - {value for peer in everybody for value in list(peer.seen)}

    def uncommitted() -> dict[TopicPartition, tuple[int | None, int]]:
        """Partitions whose commit is neither behind the last record nor behind the marker of its transaction."""
        places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        committed, ends = fetch_offsets(bootstrap, topic), end_offsets(bootstrap, places, read_committed=True)
        return {
            place: (committed.get(place), ends[place])
            for place in places
            if committed.get(place) not in (ends[place] - 1, ends[place])
        }

    def wait_for(peer: Peer, name: str, is_so: Callable[[], bool]) -> None:
        await_that(lambda: peer.fault is not None or is_so(), lambda: f"{name} holds {peer.held}; missing {missing()}")
        if peer.fault is not None:
            raise peer.fault

    try:
        for name in names:
            peer = CLIENTS[name](bootstrap, topic, topic)
            everybody.append(peer)
            records.add()
            wait_for(peer, name, lambda peer=peer: peer.held > 0)  # type: ignore[misc]
            records.add()
            if len(everybody) > 1:
                everybody[-2].close()
            records.add()
            wait_for(peer, name, lambda peer=peer: peer.held == PARTITIONS and not missing())  # type: ignore[misc]
            assert peer.seen, f"{name} has read nothing"
        # All has been read, perhaps by one that could not commit it any more: the last one reads that again.
        await_that(lambda: not uncommitted(), lambda: f"{names[-1]} holds {peer.held}; uncommitted {uncommitted()}")
        everybody[-1].close()
    finally:
        records.close()
        for peer in everybody:
            peer.ended.set()
            peer.join()
        gc.collect()
    assert {value for peer in everybody for value in peer.seen} == records.committed
    assert not uncommitted()
    offsets = fetch_offsets(bootstrap, topic)
    for number, end in everybody[-1].acknowledged.items():
        assert offsets[TopicPartition(topic, number)] >= end, "a commit that was acknowledged is lost"


def test_from_every_python_client_to_ours_and_back(bootstrap: str) -> None:
    roll(
        bootstrap, "rolling", ["kafka-python", "ixion", "aiokafka", "ixion.aio", "librdkafka", "ixion", "kafka-python"]
    )


def test_from_java_to_ours_and_back(bootstrap: str) -> None:
    need(KAFKA)
    roll(bootstrap, "rolling-java", ["ixion", "java", "ixion.aio"])
