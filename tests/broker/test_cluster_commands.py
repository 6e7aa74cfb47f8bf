"""`ixion cluster` and `ixion topic describe` on three brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from devtools.zookeeper import RealZooKeeper
from ixion.testing import Broker
from tests.cli.harness import Ixion

NUMBERS = count()
PATIENCE_S = 60.0


class Three:
    """Three brokers, two of them in one rack."""

    def __init__(self, connect: str) -> None:
        self.brokers = {
            number: Broker(
                {
                    "zookeeper.connect": connect,
                    "zookeeper.session.timeout.ms": "6000",
                    "broker.id": number,
                    "broker.rack": rack,
                    "auto.leader.rebalance.enable": False,
                    "controlled.shutdown.retry.backoff.ms": 50,
                    "replica.fetch.backoff.ms": 50,
                }
            )
            for number, rack in ((1, "a"), (2, "b"), (3, "a"))
        }


@pytest.fixture(scope="module")
def three(zookeeper: RealZooKeeper) -> Iterator[Three]:
    made = Three(f"{zookeeper.connect}/commands/{next(NUMBERS)}")
    started = []
    try:
        for broker in made.brokers.values():
            broker.start()
            started.append(broker)
        yield made
    finally:
        for broker in reversed(started):
            broker.stop()


@pytest.fixture
def ixion(
    three: Three, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ixion:
    made = Ixion(three.brokers[1].bootstrap, capfdbinary, monkeypatch, tmp_path)
    until(lambda: len(made.json("cluster", "describe")["brokers"]) == 3)
    return made


def until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def settled(ixion: Ixion, topic: str) -> list[list[int]]:
    """The replicas of each partition, once all are in sync."""
    found: list[dict[str, list[int]]] = []

    def in_sync() -> bool:
        found[:] = ixion.json("topic", "describe", topic)["partitions"]
        return all(sorted(each["replicas"]) == sorted(each["in_sync"]) for each in found)

    until(in_sync)
    return [each["replicas"] for each in found]


def test_partitions_move_and_the_plan_is_shown_first(ixion: Ixion) -> None:
    topic = f"moved-{next(NUMBERS)}"
    ixion("topic", "create", topic, "-p", "4", "-r", "2")
    ixion("produce", topic, stdin="".join(f"{number}\n" for number in range(100)))
    before = settled(ixion, topic)
    plan = ixion.jsons("cluster", "reassign", topic, "--to", "1,2")
    assert [row["planned"] for row in plan] != [], "broker 3 has some of them"
    assert not any(row["executed"] for row in plan)
    assert settled(ixion, topic) == before
    ixion("cluster", "reassign", topic, "--to", "1,2", "--throttle", "100000000", "--execute")
    assert all(set(each) == {1, 2} for each in settled(ixion, topic))
    lags = [each["lag"] for each in ixion.json("topic", "describe", topic)["partitions"]]
    assert all(lag in ({"1": 0}, {"2": 0}) for lag in lags)
    assert ixion.json("topic", "describe", topic)["configs"] == {}, "the throttles are gone"
    assert ixion.json("cluster", "describe")["reassigning"] == 0
    assert ixion("cluster", "reassign", topic, "--to", "1,2", "--execute") == ""
    assert "nothing has to move" in ixion.errors


def test_a_broker_is_drained(ixion: Ixion) -> None:
    topic = f"drained-{next(NUMBERS)}"
    ixion("topic", "create", topic, "-p", "6", "-r", "2")
    settled(ixion, topic)
    assert "moved " in ixion("cluster", "drain", "3", "--execute")
    assert all(3 not in each for each in settled(ixion, topic))
    counts = {row["broker"]: row["replicas"] for row in ixion.json("cluster", "describe")["brokers"]}
    assert counts[3] == 0
    assert "there is no broker 7; there are 1, 2, 3" in ixion.refused("cluster", "drain", "7", code=2)
    ixion("topic", "create", f"{topic}-all", "-r", "3")
    assert "has 3 replicas, but 2 brokers are left for it" in ixion.refused("cluster", "drain", "3", code=2)
    ixion("topic", "delete", f"{topic}-all")


def test_preferred_leaders_are_elected_and_trouble_is_shown(ixion: Ixion, three: Three) -> None:
    topic = f"elected-{next(NUMBERS)}"
    ixion("topic", "create", topic, "-p", "3", "-r", "3")
    settled(ixion, topic)
    three.brokers[3].stop()
    until(lambda: len(ixion.json("cluster", "describe")["brokers"]) == 2)
    found = ixion.json("cluster", "describe")
    assert found["under_replicated"] >= 3
    mine = [row for row in found["troubled"] if row["topic"] == topic]
    assert [(row["state"], sorted(row["in_sync"])) for row in mine] == [("under-replicated", [1, 2])] * 3
    assert f"{topic}-0  under-replicated" in ixion("cluster", "describe")
    assert all(each["lag"]["3"] is None for each in ixion.json("topic", "describe", topic)["partitions"])
    three.brokers[3].start()
    replicas = settled(ixion, topic)
    assert ixion("cluster", "elect", topic) == "elected 1 leader\n"
    until(
        lambda: [each["leader"] for each in ixion.json("topic", "describe", topic)["partitions"]]
        == [each[0] for each in replicas]
    )
    assert ixion("cluster", "elect", topic) == "every leader is the wanted one\n"
    assert "did you mean" in ixion.refused("cluster", "elect", f"{topic}x")
