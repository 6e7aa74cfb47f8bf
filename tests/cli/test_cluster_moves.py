"""`ixion cluster reassign` and `drain` while a broker is paused or dead: they say what they wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ixion.cli.cluster import wait as cluster_wait
from ixion.clients import Admin
from ixion.clients.admin.topics import NewTopic
from ixion.testing import Cluster
from tests.cli.harness import Ixion

SETTINGS = {"replica.lag.time.max.ms": 2_000, "replica.fetch.backoff.ms": 50, "replica.fetch.wait.max.ms": 100}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, SETTINGS, memory=True) as made:
        yield made


@pytest.fixture
def ixion(
    cluster: Cluster, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ixion:
    monkeypatch.setattr(cluster_wait, "LOOK_S", 0.01)
    monkeypatch.setattr(cluster_wait, "STUCK_S", 0.2)
    monkeypatch.setattr(cluster_wait, "SIZES_S", 0.2)
    return Ixion(cluster.brokers[cluster.controller].bootstrap, capfdbinary, monkeypatch, tmp_path)


def created(cluster: Cluster, name: str) -> bool:
    with Admin(cluster.bootstrap) as admin:
        return not admin.create_topics([NewTopic(name)]).faults


def idle(cluster: Cluster, leader: int) -> int:
    """A broker that is neither the controller nor the leader."""
    return next(number for number in cluster.brokers if number not in (cluster.controller, leader))


def one_copy(cluster: Cluster, name: str) -> tuple[int, int]:
    """A topic with one replica, on the controller; which that is, and a broker that has nothing of it."""
    home = cluster.controller
    with Admin(cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(name, assignment=[[home]])]).check()
    cluster.leader(name)
    return home, idle(cluster, home)


def on_note(monkeypatch: pytest.MonkeyPatch, then: Callable[[str], None]) -> list[str]:
    """What the command says while it waits; `then` is called with each."""
    said: list[str] = []

    def note(text: str) -> None:
        said.append(text)
        then(text)

    monkeypatch.setattr(cluster_wait, "note", note)
    return said


def test_a_move_to_a_paused_broker_says_so_and_goes_on(
    cluster: Cluster, ixion: Ixion, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, away = one_copy(cluster, "orders")
    cluster.pause(away)
    said = on_note(monkeypatch, lambda _: cluster.resume())
    out = ixion("cluster", "reassign", "orders", "--to", f"{home},{away}", "--replication", "2", "--execute")
    assert "moved 1 partition" in out
    assert f"broker {away} is in the cluster, but copied nothing" in said[0]
    assert "`ixion cluster reassign orders --cancel` takes it back" in said[0]
    assert "`ixion cluster describe` shows it" in said[0]
    cluster.wait(lambda: set(cluster.isr("orders")) == {home, away}, "the copy is in sync")


def test_a_broker_that_dies_meanwhile_is_named_and_its_move_can_be_taken_back(
    cluster: Cluster, ixion: Ixion, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, away = one_copy(cluster, "orders")
    cluster.pause(away)

    def leave(text: str) -> None:
        if "is not in the cluster" in text:
            raise KeyboardInterrupt
        cluster.expire(away)

    said = on_note(monkeypatch, leave)
    ixion("cluster", "reassign", "orders", "--to", f"{home},{away}", "-r", "2", "--execute", code=130)
    assert f"broker {away} is not in the cluster" in said[-1]
    assert "the moves continue; the same command waits for them again" in ixion.errors
    assert "`ixion cluster reassign orders --cancel` cancels them" in ixion.errors
    assert "1 being reassigned" in ixion("cluster", "describe")
    assert "cancelled 1 move" in ixion("cluster", "reassign", "orders", "--cancel")
    assert "being reassigned" not in ixion("cluster", "describe")


def test_without_a_throttle_nothing_is_moved(cluster: Cluster, ixion: Ixion, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of a broker is set on that broker, so one that is paused cannot get it."""
    monkeypatch.setattr("ixion.cli.cluster.moves.BROKER_S", 0.3)
    home, away = one_copy(cluster, "orders")
    cluster.pause(away)
    words = ("--to", f"{home},{away}", "-r", "2", "--throttle", "1000", "--execute", "--timeout", "2")
    ixion("cluster", "reassign", "orders", *words, code=1)
    assert f"the throttle of broker {away} cannot be set, so nothing was moved" in ixion.errors
    assert "being reassigned" not in ixion("cluster", "describe")
    cluster.resume()
    cluster.wait(lambda: len(cluster._image().brokers) == 3, "it is back")
    assert "throttled" not in ixion("config", "get", "topic", "orders")


def test_a_throttle_is_taken_away_from_all_that_answer(
    cluster: Cluster, ixion: Ixion, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, away = one_copy(cluster, "orders")
    ixion("cluster", "reassign", "orders", "--to", f"{home},{away}", "-r", "2", "--throttle", "9000", "--execute")
    assert "throttled" not in ixion("config", "get", "topic", "orders") + ixion("config", "get", "broker", str(away))
    cluster.pause(away)
    monkeypatch.setattr("ixion.cli.cluster.moves.BROKER_S", 0.3)
    assert "cancelled 0 moves" in ixion("cluster", "reassign", "orders", "--cancel")
    assert f"broker {away} keeps a throttle" in ixion.errors
    assert f"ixion config unset broker {away} leader.replication.throttled.rate" in ixion.errors


def test_a_controller_that_does_not_answer_is_asked_again(
    cluster: Cluster, ixion: Ixion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is paused while the command waits for a move to another paused broker; a third one takes over."""
    home, away = one_copy(cluster, "orders")
    third = next(number for number in cluster.brokers if number not in (home, away))
    cluster.pause(away)

    def next_fault(text: str) -> None:
        if "copied nothing" in text and not cluster.brokers[home].paused:
            cluster.pause(home)
        elif "does not answer, so it is asked again" in text:
            cluster.expire(home)
            cluster.resume()

    said = on_note(monkeypatch, next_fault)
    monkeypatch.setenv("IXION_BOOTSTRAP", cluster.brokers[third].bootstrap)
    words = ("--to", f"{home},{away}", "-r", "2", "--execute", "--timeout", "2")
    assert "moved 1 partition" in ixion("cluster", "reassign", "orders", *words)
    assert any("the controller does not answer" in text for text in said)


def test_drain_names_the_command_that_takes_it_back(
    cluster: Cluster, ixion: Ixion, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, away = one_copy(cluster, "orders")
    third = next(number for number in cluster.brokers if number not in (home, away))
    for number in (away, third):
        cluster.pause(number)

    def leave(_: str) -> None:
        raise KeyboardInterrupt

    on_note(monkeypatch, leave)
    monkeypatch.setattr("ixion.cli.cluster.moves.BROKER_S", 0.3)
    ixion("cluster", "drain", str(home), "--execute", code=130)
    assert "`ixion cluster reassign orders --cancel` cancels them" in ixion.errors
    assert "cancelled 1 move" in ixion("cluster", "reassign", "orders", "--cancel")


def test_elections_say_what_is_so(cluster: Cluster, ixion: Ixion) -> None:
    cluster.create_topic("orders")
    preferred = cluster.leader("orders")
    assert ixion("cluster", "elect", "orders") == "every partition is led by its preferred replica\n"
    cluster.kill(preferred)
    cluster.wait(lambda: cluster.leader("orders") != preferred, "another one leads")
    other = next(member for member in cluster.brokers.values() if member.running)
    at = ("--bootstrap", other.bootstrap)
    assert ixion("cluster", "elect", "--unclean", "orders", *at) == "every partition has a leader\n"
    assert ixion("cluster", "elect", "orders", *at, code=1) == "elected 0 leaders\n"
    assert "orders-0: the preferred leader is not in sync or not alive" in ixion.errors
    cluster.restart()
    cluster.wait_healthy()
    assert ixion("cluster", "elect", "orders", *at) == "elected 1 leader\n"


def test_a_topic_that_is_being_deleted_is_not_said_to_exist(cluster: Cluster, ixion: Ixion) -> None:
    cluster.create_topic("orders")
    away = idle(cluster, cluster.controller)
    cluster.kill(away)
    ixion("topic", "delete", "--yes", "orders")
    for more in ([], ["--if-not-exists"]):
        said = ixion.refused("topic", "create", "orders", *more)
        assert f"topic 'orders' is being deleted; its replicas on {away} go when these brokers are back" in said
    cluster.restart()
    cluster.wait(lambda: created(cluster, "orders"), "a topic of that name can be created again")
