"""A member of a classic group, and all that can happen to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ixion.clients.cluster import Cluster
from ixion.clients.connection import Connection
from ixion.clients.deadline import Deadline
from ixion.clients.group_offsets import fetch_offsets
from ixion.clients.groups import describe_group
from ixion.clients.membership import Membership
from ixion.clients.metadata import TopicPartition
from ixion.protocol.notation import Struct
from ixion.testing import Broker

PLACES = [TopicPartition("orders", number) for number in range(4)]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        broker.create_topic("orders", 4)
        yield broker.bootstrap


@pytest.fixture
def cluster(bootstrap: str) -> Iterator[Cluster]:
    with Cluster(bootstrap) as cluster:
        yield cluster


def beat(member: Membership) -> None:
    member._next_s = 0.0
    member.heartbeat_if_due()


def test_alone_it_reads_all_and_commits(cluster: Cluster) -> None:
    member = Membership(cluster, "alone", ["orders"])
    assert sorted(member.join()) == PLACES
    assert member.is_leader
    beat(member)
    assert not member.must_rejoin
    assert member.commit({PLACES[0]: 7, PLACES[3]: 9})
    assert fetch_offsets(cluster, "alone") == {PLACES[0]: 7, PLACES[3]: 9}
    member.leave()
    member.leave()
    assert describe_group(cluster, "alone").state == "Empty"
    assert not member.commit({PLACES[0]: 8})
    assert sorted(member.join()) == PLACES
    member.leave()


def test_two_share(bootstrap: str) -> None:
    shares: dict[str, list[TopicPartition]] = {}
    together = threading.Barrier(2)

    def take_part(name: str) -> None:
        with Cluster(bootstrap) as cluster:
            member = Membership(cluster, "two", ["orders"])
            while len(shares.get(name, PLACES)) != 2:
                if member.must_rejoin:
                    shares[name] = member.join()
                beat(member)
            together.wait(60)
            member.leave()

    threads = [threading.Thread(target=take_part, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(shares["a"] + shares["b"]) == PLACES


def test_a_member_that_was_given_up_commits_nothing_and_joins_again(cluster: Cluster) -> None:
    member = Membership(cluster, "stale", ["orders"])
    member.join()
    member.generation -= 1
    assert not member.commit({PLACES[0]: 5})
    assert member.must_rejoin
    assert fetch_offsets(cluster, "stale") == {}
    member.leave()
    assert sorted(member.join()) == PLACES
    member.member_id = "somebody-else"
    beat(member)
    assert member.must_rejoin
    assert member.member_id == ""


def test_a_forgotten_member_id_is_asked_for_anew(cluster: Cluster) -> None:
    member = Membership(cluster, "forgotten", ["orders"])
    member.member_id = "of-another-life"
    assert sorted(member.join()) == PLACES
    assert member.member_id != "of-another-life"
    member.leave()


def test_a_lost_connection_is_opened_again(cluster: Cluster) -> None:
    member = Membership(cluster, "lost", ["orders"])
    member.join()
    for act in (lambda: beat(member), lambda: member.commit({PLACES[1]: 3}), member.leave):
        connection = member._connection(Deadline(5))
        connection._line._socket.shutdown(2)
        act()
        beat(member)
        assert not member.must_rejoin or act == member.leave
    assert fetch_offsets(cluster, "lost") == {PLACES[1]: 3}


def test_an_interrupted_join_can_still_leave(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    member = Membership(cluster, "interrupted", ["orders"])
    member.join()
    real = Connection.receive
    interrupts = [KeyboardInterrupt()]

    def receive(self: Connection, deadline: Deadline) -> Struct:
        if interrupts:
            raise interrupts.pop()
        return real(self, deadline)

    monkeypatch.setattr(Connection, "receive", receive)
    with pytest.raises(KeyboardInterrupt):
        member.join()
    member.leave()
    assert describe_group(cluster, "interrupted").members == ()


def test_leaving_a_broker_that_is_gone_is_no_error() -> None:
    with Broker() as broker:
        broker.create_topic("orders", 1)
        cluster = Cluster(broker.bootstrap, timeout_s=1)
        member = Membership(cluster, "gone", ["orders"])
        member.join()
    member.leave()
    cluster.close()


def test_heartbeats_go_on_until_the_caller_joins(cluster: Cluster) -> None:
    member = Membership(cluster, "slow", ["orders"])
    member.join()
    member.must_rejoin = True
    beat(member)
    assert member._next_s > 0
    member.leave()
    beat(member)
    assert member._next_s == 0.0, "a member that has left is silent"


def test_more_partitions_mean_a_rebalance(cluster: Cluster) -> None:
    member = Membership(cluster, "growing", ["orders"])
    member.join()
    member._counts["orders"] = 3  # as if the topic had grown since
    beat(member)
    assert member.must_rejoin
    member.leave()
