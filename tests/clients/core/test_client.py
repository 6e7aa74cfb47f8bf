"""What a client knows of its cluster, when it asks again, and where it goes when nobody answers."""

from __future__ import annotations

import difflib
from itertools import pairwise

import pytest

from ixion.clients.address import Address
from ixion.clients.core.backoff import Backoff
from ixion.clients.core.client import Client, ClientSettings
from ixion.clients.core.cluster import ClusterState
from ixion.clients.faults import UnknownTopicError
from ixion.clients.metadata import ClusterMetadata, Node, Partition, Topic
from ixion.language.model.errors import ErrorCode, KafkaError

BOOTSTRAP = Address("first", 9092)
NODES = {number: Node(number, Address(f"node-{number}", 9092), None) for number in (1, 2)}


def middle() -> float:
    """A random number that leaves pauses as they are."""
    return 0.5


def topic(leader: int, epoch: int, topic_id: bytes = b"i" * 16, count: int = 1) -> Topic:
    partitions = tuple(Partition(number, leader, epoch, (1, 2), (1, 2), ()) for number in range(count))
    return Topic("orders", topic_id, False, partitions)


def metadata(*topics: Topic, faults: dict[str, ErrorCode] | None = None) -> ClusterMetadata:
    return ClusterMetadata("c", 1, NODES, {each.name: each for each in topics}, faults or {})


def knowing(*topics: Topic, creates: bool = False) -> ClusterState:
    state = ClusterState(Backoff(0.1, 1.0, middle), creates_topics=creates)
    state.want("orders", 0.0)
    state.learn(metadata(*topics), ["orders"], 0.0)
    return state


def leader(state: ClusterState) -> tuple[int, int]:
    partition = state.topics["orders"].partitions[0]
    return partition.leader, partition.leader_epoch


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(0.1, 1.0, middle)
    assert [backoff.pause_s(failures) for failures in (1, 2, 3, 4, 5, 500)] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1, 1])
    assert Backoff(0.1, 1.0, lambda: 0.0).pause_s(1) == pytest.approx(0.08)
    assert Backoff(0.1, 1.0, lambda: 1.0).pause_s(1) == pytest.approx(0.12)


def test_what_is_older_does_not_replace_what_is_known() -> None:
    state = knowing(topic(1, 5))
    state.learn(metadata(topic(2, 4)), ["orders"], 1.0)
    assert leader(state) == (1, 5)
    state.learn(metadata(topic(2, 6)), ["orders"], 2.0)
    assert leader(state) == (2, 6)


def test_a_topic_created_again_starts_over() -> None:
    state = knowing(topic(1, 5))
    state.learn(metadata(topic(2, 0, b"j" * 16)), ["orders"], 1.0)
    assert leader(state) == (2, 0)
    assert state.names == {b"j" * 16: "orders"}


def test_it_asks_again_when_stale_and_with_age_but_not_at_once() -> None:
    state = knowing(topic(1, 5))
    assert state.due_s == 300.0
    state.mark_stale()
    assert state.due_s == pytest.approx(0.1)
    state.failed(1.0)
    state.failed(1.0)
    assert state.due_s == pytest.approx(1.2)


def named(name: str, leader: int = 1) -> Topic:
    return topic(leader, 5, name.encode() * 16)._replace(name=name)


def test_a_new_topic_is_asked_for_alone_and_at_once() -> None:
    """KIP-526: the thousandth topic costs what the first did."""
    state = knowing(topic(1, 5))
    state.want("b", 0.01)
    assert state.is_due(0.01)
    assert state.wanted(0.01) == ["b"]
    state.want("c", 0.02)  # while that question is under way
    state.learn(metadata(named("b")), ["b"], 0.03)
    assert state.is_due(0.03)
    assert state.wanted(0.03) == ["c"]
    state.learn(metadata(named("c")), ["c"], 0.04)
    assert state.due_s == 300.0  # the age of the first answer, which was about all there were
    assert state.wanted(300.0) == ["b", "c", "orders"]


def test_a_client_that_wants_all_topics_learns_of_each_with_every_answer() -> None:
    state = knowing(topic(1, 5))
    state.wants_all = True
    state.want("b", 1.0)
    assert state.wanted(1.0) == ["b", "orders"]
    state.learn(metadata(named("b")), ["b", "orders"], 1.0, is_all=True)
    assert state.knows_all
    with pytest.raises(UnknownTopicError):
        state.want("orders", 1.0)  # it was deleted


def test_only_a_topic_that_is_not_complete_is_asked_for_again() -> None:
    state = knowing(topic(1, 5), creates=True)
    state.want("b", 0.0)
    state.learn(metadata(named("b", leader=-1)), ["b"], 0.0)
    assert state.due_s == pytest.approx(0.1)
    state.want("c", 0.05)  # new: at once, and alone, because the pause of the other is not over
    assert state.wanted(0.05) == ["c"]
    state.learn(metadata(faults={"c": ErrorCode.LEADER_NOT_AVAILABLE}), ["c"], 0.05)
    assert not state.is_due(0.1)
    assert state.wanted(0.2) == ["b", "c"]
    state.learn(metadata(named("b"), named("c")), ["b", "c"], 0.2)
    assert state.due_s == 300.0
    state.mark_stale()
    assert state.wanted(0.4) == ["b", "c", "orders"]


def test_a_topic_that_is_refused_again_and_again_is_not_asked_for_without_a_pause() -> None:
    state = knowing()
    for number in range(3):
        now_s = number * 1.0
        state.learn(metadata(faults={"orders": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}), ["orders"], now_s)
        with pytest.raises(UnknownTopicError):
            state.want("orders", now_s)
        assert state.want("orders", now_s) is None
        assert not state.is_due(now_s + 0.05)
        assert state.is_due(now_s + 0.1)


def test_a_wrong_name_is_compared_with_few_of_a_hundred_thousand_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    real = difflib.get_close_matches

    def count(word: str, possibilities: list[str], n: int) -> list[str]:
        compared.append(len(possibilities))
        return real(word, possibilities, n)

    monkeypatch.setattr(difflib, "get_close_matches", count)
    known = [f"topic-{number}" for number in range(100_000)]
    assert "did you mean 'orders'?" in UnknownTopicError("ordres", [*known, "orders"]).message
    assert "topic" in UnknownTopicError("topic-x", known).message
    assert max(compared) <= 500


def test_reasons_of_a_hundred_thousand_wrong_names_are_not_kept() -> None:
    state = knowing(topic(1, 5))
    for number in range(5_000):
        name = f"wrong-{number}"
        state.want(name, 0.0)
        state.learn(metadata(faults={name: ErrorCode.INVALID_TOPIC_EXCEPTION}), [name], 0.0)
        with pytest.raises(KafkaError):
            state.want(name, 0.0)
    assert len(state._reasons) <= 1001
    assert not state._new


def test_an_election_is_waited_for() -> None:
    state = knowing(topic(-1, 5))
    assert state.due_s == pytest.approx(0.1)


def test_an_unused_topic_is_forgotten() -> None:
    state = knowing(topic(1, 5))
    assert state.wanted(300.0) == ["orders"]
    assert state.wanted(300.1) == []
    assert state.topics == {}


def test_an_unknown_topic_is_refused_or_waited_for() -> None:
    unknown = metadata(faults={"orders": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
    state = knowing()
    state.learn(unknown, ["orders"], 0.0)
    with pytest.raises(UnknownTopicError):
        state.want("orders", 1.0)
    assert state.want("orders", 1.0) is None  # asked for once more
    creating = knowing(creates=True)
    creating.learn(unknown, ["orders"], 0.0)
    assert creating.want("orders", 1.0) is None
    assert creating.due_s == pytest.approx(0.1)
    forbidden = knowing(creates=True)
    forbidden.learn(metadata(faults={"orders": ErrorCode.TOPIC_AUTHORIZATION_FAILED}), ["orders"], 0.0)
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        forbidden.want("orders", 1.0)


@pytest.mark.parametrize("creates", [True, False])
def test_a_missing_topic_is_asked_for_again_and_named_once(creates: bool) -> None:
    """Another client may create it; until then a subscriber waits."""
    unknown = metadata(faults={"orders": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
    state = knowing(creates=creates)
    state.want_only(["orders"], 0.0)
    for now_s in (0.0, 1.0, 4.9, 5.1, 9.0):
        state.learn(unknown, ["orders"], now_s)
        assert state.due_s == pytest.approx(now_s + 0.1)
        assert state.wanted(now_s + 0.1) == ["orders"]
        assert state.unheard == (["orders"] if now_s > 5 else [])
    state.want_only([], 9.0)
    state.learn(unknown, ["orders"], 9.1)
    assert state.wanted(9.2) == []


@pytest.mark.parametrize("wants_all", [True, False])
def test_a_known_topic_that_is_wanted_again_is_asked_for_unless_all_are(wants_all: bool) -> None:
    """It may have grown, or have been created again, since it was last wanted."""
    state = ClusterState(Backoff(0.1, 1.0, middle))
    state.wants_all = wants_all
    state.learn(metadata(topic(1, 5)), ["orders"], 0.0, is_all=wants_all)
    state.want_only(["orders"], 1.0)
    assert (state.due_s > 1.0) == wants_all


def test_when_no_known_broker_can_be_reached_it_starts_from_the_bootstrap_addresses() -> None:
    client = Client([BOOTSTRAP], ClientSettings(), middle)
    client.cluster.want("orders", 0.0)
    client.tick(0.0)
    (first,) = client.take_opened()
    assert first.address == BOOTSTRAP
    client.cluster.learn(metadata(topic(1, 5)), ["orders"], 0.0)
    client._uses_bootstrap = False
    first.lost()
    now_s = 10.0
    tried = []
    for _ in range(40):
        client.tick(now_s)
        for machine in client.take_opened():
            tried.append(machine.address.host)
            machine.lost("refused")
        now_s += 0.5
    assert {"node-1", "node-2"} <= set(tried)
    assert tried[-1] == "first"


def test_a_broker_that_refuses_is_left_alone_for_longer_and_longer() -> None:
    client = Client([BOOTSTRAP], ClientSettings(), middle)
    client.cluster.learn(metadata(topic(1, 5)), ["orders"], 0.0)
    now_s, opened = 0.0, []
    while now_s < 10:
        client.ready(1, now_s)
        for machine in client.take_opened():
            if machine.address.host == "node-1":
                opened.append(now_s)
            machine.lost("refused")
        client.tick(now_s)
        now_s += 0.01
    gaps = [later - earlier for earlier, later in pairwise(opened)]
    assert gaps[:4] == pytest.approx([0.05, 0.1, 0.2, 0.4], abs=0.015)
    assert gaps[-1] == pytest.approx(1.0, abs=0.03)


def test_an_unused_connection_is_closed() -> None:
    client = Client([BOOTSTRAP], ClientSettings(connections_max_idle_s=60.0), middle)
    client.cluster.want("orders", 0.0)
    client.tick(0.0)
    (machine,) = client.take_opened()
    machine.phase = 3  # ready
    client.cluster.learn(metadata(topic(1, 5)), ["orders"], 0.0)
    client.tick(59.0)
    assert client.machines == [machine]
    client.tick(60.1)
    assert machine.closed
    assert client.machines == []
