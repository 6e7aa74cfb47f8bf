"""What `ixion consume` does beside copying: topics that grow, brokers that go, records that are gone."""

from __future__ import annotations

import pytest

from ixion.cli.consume import copy as consume_copy
from ixion.cli.consume.copy import Copy, TroubleNotes
from ixion.cli.consume.format import writer
from ixion.clients.faults import UnreachableError
from ixion.clients.metadata import TopicPartition
from ixion.clients.reader import Reader
from ixion.language.records.builder import BatchBuilder
from tests.clients.fake import FakeCluster, FakeLog

PLACES = [TopicPartition("orders", number) for number in range(2)]


def fill(fakes: FakeCluster, place: TopicPartition, *values: bytes) -> None:
    builder = BatchBuilder()
    for value in values:
        builder.append(None, value)
    fakes.logs[place].append(builder.build())


def copy(most: int | None, patience_s: float = 30) -> Copy:
    return Copy(["orders"], writer("value", ""), most, read_committed=False, patience_s=patience_s, wanted=None)


def test_a_topic_that_grows_is_read_whole(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        fill(fakes, PLACES[0], b"one")
        with Reader(fakes.bootstrap, {PLACES[0]: 0}, metadata_max_age_s=0.05) as reader:
            copy(1).follow(reader, growing=True)
            fakes.leaders["orders"] = [1, 1]
            fakes.logs[PLACES[1]] = FakeLog()
            fill(fakes, PLACES[1], b"two", b"three")
            second = copy(2)
            second.follow(reader, growing=True)
            second._add_new_partitions(reader)  # nothing new now
            assert second.positions == {PLACES[1]: 2}
            assert reader.offsets == {PLACES[0]: 1, PLACES[1]: 2}
    assert capfdbinary.readouterr().out == b"one\ntwo\nthree\n"


def test_lasting_trouble_is_an_error_unless_it_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consume_copy, "POLL_S", 0.01)
    with FakeCluster(nodes=2) as fakes:
        fakes.add_topic("orders", leaders=[2])
        fakes.nodes[2].stop()
        with (
            Reader(fakes.bootstrap, {PLACES[0]: 0}) as reader,
            pytest.raises(UnreachableError, match="connection refused"),
        ):
            copy(None, 0.05).to_ends(reader, {PLACES[0]: 5})


def test_each_problem_is_reported_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consume_copy, "SOON_S", -1.0)
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[-1])
        with Reader(fakes.bootstrap, {PLACES[0]: 0}) as reader:
            watch = TroubleNotes(reader)
            watch.look()
            while reader.trouble is None:
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
