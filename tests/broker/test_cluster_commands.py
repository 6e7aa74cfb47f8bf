"""`ixion cluster` and `ixion topic describe` on three brokers."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.testing import Broker, Cluster
from tests.cli.harness import Ixion
from tests.web.prometheus import Key, parse, value

NUMBERS = count()
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with Cluster(3, {"auto.leader.rebalance.enable": False, "replica.fetch.backoff.ms": 50}, metrics=True) as running:
        yield running


@pytest.fixture
def ixion(
    three: Cluster, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
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
    assert ixion("topic", "describe", topic).splitlines()[1].split()[-1] == "LAG"
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
    ixion("topic", "delete", "--yes", f"{topic}-all")


def test_preferred_leaders_are_elected_and_trouble_is_shown(ixion: Ixion, three: Cluster) -> None:
    topic = f"elected-{next(NUMBERS)}"
    ixion("topic", "create", topic, "-p", "3", "-r", "3")
    settled(ixion, topic)
    three.shut_down(3)
    until(lambda: len(ixion.json("cluster", "describe")["brokers"]) == 2)
    found = ixion.json("cluster", "describe")
    assert found["under_replicated"] >= 3
    mine = [row for row in found["troubled"] if row["topic"] == topic]
    assert [(row["state"], sorted(row["in_sync"])) for row in mine] == [("under-replicated", [1, 2])] * 3
    assert f"{topic}-0  under-replicated" in ixion("cluster", "describe")
    assert all(each["lag"]["3"] is None for each in ixion.json("topic", "describe", topic)["partitions"])
    three.restart(3)
    replicas = settled(ixion, topic)
    assert ixion("cluster", "elect", topic) == "elected 1 leader\n"
    until(
        lambda: (
            [each["leader"] for each in ixion.json("topic", "describe", topic)["partitions"]]
            == [each[0] for each in replicas]
        )
    )
    assert ixion("cluster", "elect", topic) == "every partition is led by its preferred replica\n"
    assert "did you mean" in ixion.refused("cluster", "elect", f"{topic}x")


def page(broker: Broker, name: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(broker.metrics_url.replace("/metrics", name), timeout=30) as answer:
            return answer.status, answer.read().decode().strip()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode().strip()


def figures(broker: Broker) -> dict[Key, float]:
    return parse(page(broker, "/metrics")[1] + "\n")


def test_pages_tell_how_a_broker_stands_in_its_cluster(ixion: Ixion, three: Cluster) -> None:
    topic = f"pages-{next(NUMBERS)}"
    ixion("topic", "create", topic, "-p", "3", "-r", "3")
    ixion("produce", topic, stdin="".join(f"{number}\n" for number in range(10)))
    settled(ixion, topic)
    for broker in three.brokers.values():
        until(lambda it=broker: page(it, "/readyz") == (200, "ready"))  # type: ignore[misc]
        status, text = page(broker, "/healthz")
        assert (status, text[:21]) == (200, "ok, registered since ")
    found = {number: figures(broker) for number, broker in three.brokers.items()}
    assert sum(value(each, "ixion_active_controller") for each in found.values()) == 1
    assert all(value(each, "ixion_registered") == 1 for each in found.values())
    assert all(value(each, "ixion_registered_since_seconds") > 1e9 for each in found.values())
    assert sum(value(each, "ixion_replication_bytes_total", direction="in") for each in found.values()) > 0
    assert sum(value(each, "ixion_replication_bytes_total", direction="out") for each in found.values()) > 0
    assert all(value(each, "ixion_followed_partitions") >= 1 for each in found.values())
    until(lambda: all(value(figures(each), "ixion_replica_max_lag") == 0 for each in three.brokers.values()))
    controller = next(each for each in found.values() if value(each, "ixion_active_controller"))
    assert sum(count for (name, _), count in controller.items() if name == "ixion_leader_elections_total") > 0
    assert value(controller, "ixion_unclean_leader_elections_total") == 0


def test_a_broker_that_is_not_registered_is_neither_well_nor_ready(three: Cluster) -> None:
    broker = three.brokers[2]

    async def mark(real: RealBroker, since_ms: int | None) -> int | None:
        before, real.parts.registered_ms = real.parts.registered_ms, since_ms
        return before

    before = broker.call(lambda real: mark(real, None))
    assert page(broker, "/healthz")[0] == page(broker, "/readyz")[0] == 503
    assert "not registered in ZooKeeper" in page(broker, "/healthz")[1]
    broker.call(lambda real: mark(real, before))
    assert page(broker, "/readyz")[0] == 200
