"""What grows with the number of partitions in a cluster, measured part by part without a cluster.

    python -m devtools.scale            10,000 partitions at most; a table for docs/reliability.md

Each partition has three replicas. Sizes are bytes on the wire or in memory; times are processor time of this process,
the best of three. A controller sends UpdateMetadata about every partition to every broker when it takes over, and
LeaderAndIsr about the replicas that a broker has.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar, cast

from ixion.broker.controller.cluster.batch import Batch, ControlRequest, Sender
from ixion.broker.controller.cluster.channels import VERSIONS
from ixion.broker.controller.cluster.cluster import Cluster, Member, Topic
from ixion.broker.controller.cluster.fenced_tree import FencedTree
from ixion.broker.controller.cluster.leadership import Leadership, state_of
from ixion.broker.metadata import paths
from ixion.broker.metadata.broker_node import Registration
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.metadata.node import Node, Stat
from ixion.broker.metadata.session import MetadataSession
from ixion.broker.metadata.topic_node import Replicas, encode_partition_state
from ixion.broker.replica.control import roles_of
from ixion.broker.replica.fetch_requests import NEWEST, FetchLimits, FetchRequests
from ixion.broker.replica.metadata_update import take_topics, topics_of
from ixion.config.listeners import Endpoint
from ixion.language.protocol.codec.cursor import ELEMENT_BUDGET
from ixion.language.protocol.codec.sink import Buffer
from ixion.language.protocol.envelope import decode_request, encode_request
from ixion.language.protocol.flaws import DecodeError
from ixion.language.protocol.headers import RequestHeader
from ixion.language.protocol.messages.k01_fetch import FetchPartition
from ixion.language.protocol.messages.k04_leader_and_isr import LeaderAndIsrRequest
from ixion.language.protocol.messages.k06_update_metadata import UpdateMetadataRequest

T = TypeVar("T")

BROKERS: Final = 100
IN_TOPIC: Final = 50
SENDER: Final = Sender(controller_id=1, controller_epoch=7, listener="PLAINTEXT")


class Part(NamedTuple):
    name: str
    size: int  # bytes; 0: it has none
    seconds: float


def cluster_of(partitions: int) -> Cluster:
    made = Cluster()
    for number in range(1, BROKERS + 1):
        registration = Registration(
            endpoints=(Endpoint("PLAINTEXT", f"broker-{number}.example.org", 9092),), timestamp_ms=0
        )
        made.brokers[number] = Member(broker_id=number, epoch=100 + number, registration=registration)
    for first in range(0, partitions, IN_TOPIC):
        name = f"topic-{first // IN_TOPIC:06d}"
        replicas = {}
        for number in range(min(IN_TOPIC, partitions - first)):
            brokers = tuple((first + number + each) % BROKERS + 1 for each in range(3))
            replicas[number] = Replicas(all=brokers)
            made.leaderships[name, number] = Leadership(leader=brokers[0], leader_epoch=3, isr=brokers)
        made.put_topic(Topic(name=name, topic_id=name.encode()[:16].ljust(16, b"."), partitions=replicas))
    return made


def run(steps: Any) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


def timed(work: Callable[[], T]) -> tuple[T, float]:
    best_s, found = 1e9, None
    for _ in range(3):
        begun_s = time.process_time()
        found = work()
        best_s = min(best_s, time.process_time() - begun_s)
    return found, best_s  # type: ignore[return-value]


def sent(request: ControlRequest) -> list[Buffer]:
    api, version = VERSIONS[type(request)]
    header = RequestHeader(api_key=api, api_version=version, correlation_id=1, client_id="1")
    return encode_request(header, request)


def frame(request: ControlRequest) -> bytes:
    return b"".join(bytes(part) for part in sent(request))


def parts_of(partitions: int) -> list[Part]:
    """`partitions` are those of the cluster for metadata, and those of one broker for the rest."""
    cluster = cluster_of(partitions)
    keys = list(cluster.all_keys())
    parts = []

    def build(show: bool) -> ControlRequest:
        batch = Batch(cluster)
        if show:
            batch.show([1], keys)
        else:
            for key in keys:
                batch._led.setdefault(1, {})[key] = False
        (request,) = run(batch.requests(SENDER))[1]
        made: ControlRequest = request
        return made

    for show, name in ((False, "LeaderAndIsr"), (True, "UpdateMetadata")):
        request, seconds = timed(lambda show=show: build(show))  # type: ignore[misc]
        data, encoding_s = timed(lambda request=request: frame(afresh(request)))  # type: ignore[misc]
        parts.append(Part(f"{name}: build", 0, seconds))
        parts.append(Part(f"{name}: encode", len(data), encoding_s))
        if show:
            frame(request)
            parts.append(Part(f"{name}: encode for the next broker", 0, timed(partial(sent, request))[1]))
        (_, decoded), seconds = timed(lambda data=data: decode_request(data, budget=1 << 40))  # type: ignore[misc]
        parts.append(Part(f"{name}: parse", 0, seconds))
        if isinstance(decoded, LeaderAndIsrRequest):
            _, seconds = timed(lambda decoded=decoded: roles_of(decoded))  # type: ignore[misc]
            parts.append(Part("LeaderAndIsr: roles", 0, seconds))
        else:
            parts.append(image_of(decoded))
    parts.append(session_of(keys))
    parts.append(take_over_of(cluster, keys))
    parts.append(states_of(cluster, keys))
    return parts


def afresh(request: ControlRequest) -> ControlRequest:
    """With nothing encoded yet."""
    if not isinstance(request, UpdateMetadataRequest):
        return request
    return UpdateMetadataRequest(
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        topic_states=tuple(request.topic_states),
        live_brokers=tuple(request.live_brokers),
    )


def take_over_of(cluster: Cluster, keys: list[tuple[str, int]]) -> Part:
    """What a controller that takes over makes for all brokers, and its peak of memory."""

    def requests() -> Any:
        batch = Batch(cluster)
        batch.show(cluster.brokers, keys)
        for key in keys:
            batch.lead(cluster.replicas(key).all, key)
        return run(batch.requests(SENDER))

    _, seconds = timed(requests)
    tracemalloc.start()
    made = requests()
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(made) == BROKERS
    return Part(f"take-over: requests for {BROKERS} brokers", size, seconds)


def states_of(cluster: Cluster, keys: list[tuple[str, int]]) -> Part:
    """The states of all partitions, read by a controller that takes over from a tree that answers at once."""
    nodes = {}
    for key in keys:
        stat = Stat(version=1, created_zxid=1, modified_zxid=1, created_ms=0, modified_ms=0, owner=0, children=0)
        data = encode_partition_state(state_of(cluster.leaderships[key], 7))
        nodes[paths.partition_state(*key)] = Node(data=data, stat=stat)

    class Session:
        async def get(self, path: str) -> Node:
            return nodes[path]

    tree = FencedTree(cast(MetadataSession, Session()), 9, 1)
    found, seconds = timed(lambda: asyncio.run(tree.read_states(keys)))
    assert len(found) == len(keys)
    return Part("take-over: states of partitions, decoded", sum(len(node.data) for node in nodes.values()), seconds)


def image_of(request: Any) -> Part:
    assert isinstance(request, UpdateMetadataRequest)
    topics = topics_of(request)
    configs: dict[str, dict[str, str]] = {topic.topic_name: {} for topic in topics}

    def take() -> ClusterImage:
        image = ClusterImage(cluster_id="scale")
        run(take_topics(image, topics, configs))
        return image

    _, seconds = timed(take)
    tracemalloc.start()
    image = take()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert image.topics
    return Part("image: take", size, seconds)


def session_of(keys: list[tuple[str, int]]) -> Part:
    """The first fetch of a follower that copies all of them from one leader; later ones name what changed."""
    wishes = {
        (name.encode()[:16].ljust(16, b"."), number): FetchPartition(
            partition=number, fetch_offset=1 << 20, current_leader_epoch=3, partition_max_bytes=1 << 20
        )
        for name, number in keys
    }
    limits = FetchLimits(500, 1, 10 << 20)

    def fetch() -> bytes:
        request = FetchRequests(1).next(wishes, limits, 7, NEWEST)
        header = RequestHeader(api_key=1, api_version=NEWEST, correlation_id=1, client_id="1")
        return b"".join(bytes(part) for part in encode_request(header, request))

    data, seconds = timed(fetch)
    return Part("first fetch of a session", len(data), seconds)


def most_within_budget() -> int:
    """Partitions in one UpdateMetadata that a broker still reads."""
    low, high = 1_000, 1_000_000
    per_partition = None
    for partitions in (1_000, 2_000):
        data = frame(next(iter(run(_shown(cluster_of(partitions)).requests(SENDER))[1])))
        need = _need(data)
        per_partition = need if per_partition is None else need - per_partition
    assert per_partition is not None
    return min(max(int(ELEMENT_BUDGET / (per_partition / 1_000)), low), high)


def _shown(cluster: Cluster) -> Batch:
    batch = Batch(cluster)
    batch.show([1], list(cluster.all_keys()))
    return batch


def _need(data: bytes) -> int:
    """The smallest budget with which it is read."""
    low, high = 1, 1 << 24
    while low < high:
        middle = (low + high) // 2
        try:
            decode_request(data, budget=middle)
            high = middle
        except DecodeError:
            low = middle + 1
    return low


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.scale", description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", default="100,1000,10000", help="by comma")
    sizes = [int(each) for each in parser.parse_args().partitions.split(",")]
    tables = {size: parts_of(size) for size in sizes}
    print("| part | " + " | ".join(f"{size:,} partitions" for size in sizes) + " | a partition |")
    print("|---|" + "---|" * (len(sizes) + 1))
    for row, part in enumerate(tables[sizes[0]]):
        cells = []
        for size in sizes:
            found = tables[size][row]
            said = f"{found.seconds * 1_000:.2f} ms"
            cells.append(f"{found.size:,} B, {said}" if found.size else said)
        last = tables[sizes[-1]][row]
        each = f"{last.seconds / sizes[-1] * 1e6:.1f} µs"
        print(
            f"| {part.name} | {' | '.join(cells)} | {f'{last.size / sizes[-1]:.0f} B, ' if last.size else ''}{each} |"
        )
    print(
        f"\nOne UpdateMetadata may name about {most_within_budget():,} partitions (ELEMENT_BUDGET {ELEMENT_BUDGET:,})."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
