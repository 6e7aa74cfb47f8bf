"""A cluster that moves, loses brokers, and is asked for what it does not have."""

from __future__ import annotations

import socket

import pytest

from ixion.clients.admin.offsets import EARLIEST
from ixion.clients.admin.runner import AdminRunner
from ixion.clients.admin.starts import find_topic, offsets_at
from ixion.clients.faults import TimedOutError, UnknownTopicError, UnreachableError
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k02_list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from tests.clients.fake import FakeCluster, Fault

ORDERS = [TopicPartition("orders", number) for number in range(2)]


def offsets(admin: AdminRunner, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    return admin.run(offsets_at, places, EARLIEST, False)


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


def time_out(fakes: FakeCluster, expected: str) -> str:
    """What a call says that never succeeds. On a busy machine it needs more time to find out what is wrong."""
    for timeout_ms in (200, 2_000, 20_000, 60_000):
        with AdminRunner(fakes.bootstrap, default_api_timeout_ms=timeout_ms) as admin:
            with pytest.raises(TimedOutError, match=rf"not done within {timeout_ms / 1_000:g} s") as caught:
                offsets(admin, ORDERS[:1])
            if expected in str(caught.value):
                break
    return str(caught.value)


def test_the_leader_of_each_partition_is_asked() -> None:
    with FakeCluster(nodes=2) as fakes, AdminRunner(fakes.bootstrap) as admin:
        fakes.add_topic("orders", leaders=[1, 2])
        fakes.logs[ORDERS[1]].start = 5
        assert offsets(admin, ORDERS) == {ORDERS[0]: 0, ORDERS[1]: 5}
        assert sorted(node for node, api, _ in fakes.seen if api == ApiKey.LIST_OFFSETS) == [1, 2]


def test_a_leader_that_has_moved_is_found_again() -> None:
    with FakeCluster(nodes=2) as fakes, AdminRunner(fakes.bootstrap) as admin:
        fakes.add_topic("orders", leaders=[1, 1])
        assert admin.run(find_topic, "orders").partitions[1].leader == 1
        fakes.leaders["orders"] = [1, 2]
        assert offsets(admin, ORDERS) == {ORDERS[0]: 0, ORDERS[1]: 0}
        asked = [(node, request) for node, api, request in fakes.seen if api == ApiKey.LIST_OFFSETS]
        assert [node for node, _ in asked] == [1, 2]
        again = asked[1][1]
        assert isinstance(again, ListOffsetsRequest)
        assert [part.partition_index for part in again.topics[0].partitions] == [1]


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.HALF, Fault.WRONG_ID])
def test_a_broken_connection_is_opened_again(fault: Fault) -> None:
    with FakeCluster() as fakes, AdminRunner(fakes.bootstrap) as admin:
        fakes.add_topic("orders", leaders=[1, 1])
        fakes.at(1, ApiKey.LIST_OFFSETS, fault, fault)
        assert offsets(admin, ORDERS) == {ORDERS[0]: 0, ORDERS[1]: 0}
        assert fakes.count(ApiKey.LIST_OFFSETS) == 3


def test_what_never_gets_better_ends_with_the_time_and_the_reason() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[-1])
        assert "; orders-0 has no leader" in time_out(fakes, "has no leader")


def test_an_error_that_no_retry_mends_is_raised_at_once() -> None:
    def forbid(request: Struct) -> ListOffsetsResponse:
        assert isinstance(request, ListOffsetsRequest)
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return refusal(code)

    def refusal(code: ErrorCode) -> ListOffsetsResponse:
        from ixion.language.protocol.messages.k02_list_offsets import (
            ListOffsetsPartitionResponse,
            ListOffsetsTopicResponse,
        )

        part = ListOffsetsPartitionResponse(partition_index=0, error_code=code)
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="orders", partitions=(part,)),))

    with FakeCluster() as fakes, AdminRunner(fakes.bootstrap) as admin:
        fakes.add_topic("orders", leaders=[1])
        fakes.at(1, ApiKey.LIST_OFFSETS, forbid)
        with pytest.raises(KafkaError, match="orders-0: the principal may not") as caught:
            offsets(admin, ORDERS[:1])
        assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert fakes.count(ApiKey.LIST_OFFSETS) == 1


def test_any_bootstrap_address_will_do() -> None:
    with FakeCluster() as fakes, AdminRunner(f"{free_address()},{fakes.bootstrap}") as admin:
        fakes.add_topic("orders", leaders=[1])
        assert len(admin.run(find_topic, "orders").partitions) == 1


def test_unreachable_bootstrap_addresses_are_all_reported_at_once() -> None:
    first, second = free_address(), free_address()
    expected = pytest.raises(UnreachableError, match=f"connection refused by {first}.*connection refused by {second}")
    with AdminRunner(f"{first},{second}", default_api_timeout_ms=3_600_000) as admin, expected:
        admin.run(find_topic, "orders")


def test_a_broker_that_went_away_is_waited_for() -> None:
    with FakeCluster(nodes=2) as fakes, AdminRunner(fakes.bootstrap) as admin:
        fakes.add_topic("orders", leaders=[2])
        admin.run(find_topic, "orders")
        fakes.nodes[2].stop()
        assert "; broker 2: connection refused by " in time_out(fakes, "connection refused")
        fakes.leaders["orders"] = [1]
        assert offsets(admin, ORDERS[:1]) == {ORDERS[0]: 0}


def test_an_unknown_topic_is_reported_with_the_nearest_name() -> None:
    with FakeCluster() as fakes, AdminRunner(fakes.bootstrap) as admin:
        fakes.add_topic("orders", leaders=[1])
        with pytest.raises(UnknownTopicError, match="there is no topic 'ordres'; did you mean 'orders'"):
            admin.run(find_topic, "ordres")
        with pytest.raises(UnknownTopicError, match=r"there is no topic 'zzz'$"):
            admin.run(find_topic, "zzz")


def test_a_topic_that_has_grown_is_looked_at_again() -> None:
    with FakeCluster() as fakes, AdminRunner(fakes.bootstrap) as admin:
        fakes.add_topic("orders", leaders=[1])
        assert offsets(admin, ORDERS[:1]) == {ORDERS[0]: 0}
        fakes.add_topic("orders", leaders=[1, 1])
        assert offsets(admin, ORDERS) == {ORDERS[0]: 0, ORDERS[1]: 0}


def test_a_partition_that_is_not_there() -> None:
    with FakeCluster() as fakes, AdminRunner(fakes.bootstrap) as admin:
        fakes.add_topic("orders", leaders=[1])
        with pytest.raises(KafkaError, match="topic 'orders' has partitions 0 to 0, not 1"):
            offsets(admin, ORDERS)
