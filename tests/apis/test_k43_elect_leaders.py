from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions
from tests.apis.filling import fill

PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"broker.id": 5}) as running:
        running.create_topic("t", 3)
        running.create_topic("other")
        yield running


def elect(
    asking: Asking, kind: int, *topics: tuple[str, tuple[int, ...]], version: int = -1
) -> tuple[int, dict[tuple[str, int], int]]:
    wanted = tuple(TopicPartitions(topic=name, partitions=numbers) for name, numbers in topics) or None
    request = ElectLeadersRequest(election_type=kind, topic_partitions=wanted, timeout_ms=5000)
    answer = asking.ask(request, ElectLeadersResponse, version)
    return answer.error_code, {
        (topic.topic, each.partition_id): each.error_code
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }


def lose_leader(broker: Broker, number: int, isr: tuple[int, ...] = (5,)) -> None:
    async def change(running: RealBroker) -> None:
        known = running.parts.image.partition("t", number)
        assert known is not None
        running.parts.image.topics["t"].partitions[number] = known._replace(leader=-1, isr=isr)
        running.parts.replicas.partitions["t", number].leads = False

    broker.call(change)


def test_a_preferred_leader_that_leads_already_needs_no_election(asking: Asking) -> None:
    for version in versions(ApiKey.ELECT_LEADERS):
        code, found = elect(asking, PREFERRED, ("t", (0, 9)), ("none", (0,)), version=version)
        assert code == ErrorCode.NONE
        assert found == {
            ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
            ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
    assert elect(asking, UNCLEAN, ("t", (0,))) == (ErrorCode.NONE, {("t", 0): ErrorCode.ELECTION_NOT_NEEDED})


def test_a_partition_without_a_leader_gets_one_and_takes_records(broker: Broker, asking: Asking) -> None:
    lose_leader(broker, 1)
    assert elect(asking, PREFERRED, ("t", (1,))) == (ErrorCode.NONE, {("t", 1): ErrorCode.NONE})
    fill(broker.bootstrap, "t", partition=1, count=1)


def test_an_answer_about_all_partitions_lists_only_elections(broker: Broker, asking: Asking) -> None:
    assert elect(asking, PREFERRED) == (ErrorCode.NONE, {})
    lose_leader(broker, 2)
    assert elect(asking, PREFERRED) == (ErrorCode.NONE, {("t", 2): ErrorCode.NONE})


def test_out_of_sync_replicas_lead_only_at_any_price(broker: Broker, asking: Asking) -> None:
    lose_leader(broker, 0, isr=(6,))
    found = elect(asking, PREFERRED, ("t", (0,)))
    assert found == (ErrorCode.NONE, {("t", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE})
    assert elect(asking, UNCLEAN, ("t", (0,))) == (ErrorCode.NONE, {("t", 0): ErrorCode.NONE})


@pytest.mark.parametrize("seen", [True, False])
def test_answered_when_this_broker_sees_the_leader_or_after_the_timeout(
    broker: Broker, asking: Asking, seen: bool
) -> None:
    lose_leader(broker, 0)

    async def elect_elsewhere(running: RealBroker) -> None:
        """The controller elects, but this broker learns of it later, or not in time."""
        parts = running.parts

        async def elected(keys: list[tuple[str, int]], _unclean: bool) -> dict[tuple[str, int], ErrorCode]:
            if seen:
                parts.timer.call_later(20, learn)
            return dict.fromkeys(keys, ErrorCode.NONE)

        def learn() -> None:
            assert parts.replicas.elect_leader_purgatory.watched == 1  # the answer waits
            known = parts.image.partition("t", 0)
            assert known is not None
            parts.image.topics["t"].partitions[0] = known._replace(leader=5)
            parts.replicas.wake_all(("t", 0))

        parts.controller.leaders.elect = elected  # type: ignore[method-assign,assignment]

    broker.call(elect_elsewhere)
    wanted = (TopicPartitions(topic="t", partitions=(0,)),)
    request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=wanted, timeout_ms=20_000 if seen else 20)
    (topic,) = asking.ask(request, ElectLeadersResponse).replica_election_results
    assert topic.partition_result[0].error_code == (ErrorCode.NONE if seen else ErrorCode.REQUEST_TIMED_OUT)


def test_other_kinds_of_elections_are_not_held(asking: Asking) -> None:
    found = elect(asking, 7, ("t", (0,)))
    assert found == (ErrorCode.INVALID_REQUEST, {("t", 0): ErrorCode.INVALID_REQUEST})
