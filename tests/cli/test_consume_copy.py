"""What `ixion consume` does beside copying: topics that grow, brokers that go, records that are gone."""

from __future__ import annotations

import pytest

from ixion.cli import consume_copy
from ixion.cli.consume_copy import Watch, add_new_partitions, copy_to_ends, follow
from ixion.cli.consume_format import writer
from ixion.clients.cluster import Cluster
from ixion.clients.faults import UnreachableError
from ixion.clients.metadata import TopicPartition
from ixion.clients.reader import Reader
from ixion.records.builder import BatchBuilder
from tests.clients.fake import FakeCluster, FakeLog

PLACES = [TopicPartition("orders", number) for number in range(2)]


def fill(fakes: FakeCluster, place: TopicPartition, *values: bytes) -> None:
    builder = BatchBuilder()
    for value in values:
        builder.append(None, value)
    fakes.logs[place].append(builder.build())


def test_a_topic_that_grows_is_read_whole(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consume_copy, "LOOK_S", 0.0)
    with FakeCluster() as fakes, Cluster(fakes.bootstrap) as cluster:
        fakes.add_topic("orders", leaders=[1])
        fill(fakes, PLACES[0], b"one")
        with Reader(cluster, {PLACES[0]: 0}) as reader:
            follow(cluster, "orders", reader, writer("value", ""), 1, growing=True)
            fakes.leaders["orders"] = [1, 1]
            fakes.logs[PLACES[1]] = FakeLog()
            fill(fakes, PLACES[1], b"two", b"three")
            follow(cluster, "orders", reader, writer("value", ""), 2, growing=True)
            add_new_partitions(cluster, "orders", reader)  # nothing new now
            assert reader.offsets == {PLACES[0]: 1, PLACES[1]: 2}
    assert capfdbinary.readouterr().out == b"one\ntwo\nthree\n"


def test_trouble_that_lasts_is_an_error_for_who_wants_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consume_copy, "POLL_S", 0.01)
    with FakeCluster(nodes=2) as fakes, Cluster(fakes.bootstrap) as cluster:
        fakes.add_topic("orders", leaders=[2])
        cluster.topic("orders")
        fakes.nodes[2].stop()
        with Reader(cluster, {PLACES[0]: 0}) as reader, pytest.raises(UnreachableError, match="nobody listens"):
            copy_to_ends(reader, writer("value", ""), None, {PLACES[0]: 5}, 0.05)


def test_each_thing_is_said_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consume_copy, "SOON_S", -1.0)
    with FakeCluster() as fakes, Cluster(fakes.bootstrap) as cluster:
        fakes.add_topic("orders", leaders=[-1])
        with Reader(cluster, {PLACES[0]: 0}) as reader:
            watch = Watch(reader)
            watch.look()
            reader.poll(0.01)
            watch.look()
            watch.look()
            reader.missed = 7
            watch.look()
            watch.look()
    assert capsys.readouterr().err.splitlines() == [
        "ixion: orders-0 has no leader at the moment (trying again)",
        "ixion: 7 records were deleted before they could be read",
    ]
