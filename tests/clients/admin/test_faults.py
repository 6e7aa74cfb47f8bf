"""What the administrator does about brokers that are lost, moved, silent or wrong."""

from __future__ import annotations

import asyncio

import pytest

from ixion.clients import Admin, TopicPartition, aio
from ixion.clients.admin.offsets import LATEST
from ixion.clients.admin.topics import NewTopic
from ixion.clients.faults import TimedOutError, UnknownTopicError, UnreachableError
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.clients.fake import FakeCluster, Fault

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.DROP_AFTER, Fault.HALF, Fault.GARBAGE, Fault.WRONG_ID])
def test_an_answer_that_was_lost_does_not_make_a_change_fail(fault: Fault) -> None:
    with FakeCluster() as fakes, Admin(fakes.bootstrap) as admin:
        fakes.at(1, ApiKey.CREATE_TOPICS, fault)
        fakes.at(1, ApiKey.DELETE_TOPICS, fault)
        assert admin.create_topics([NewTopic("orders", 1)]).check()["orders"] is not None
        admin.delete_topics(["orders"]).check()
        assert fakes.count(ApiKey.CREATE_TOPICS) == fakes.count(ApiKey.DELETE_TOPICS) == 2
        assert fakes.leaders == {}
        with pytest.raises(UnknownTopicError):
            admin.delete_topics(["orders"]).check()


def test_a_partition_that_has_moved_is_asked_of_its_new_leader() -> None:
    with FakeCluster(nodes=2) as fakes, Admin(fakes.bootstrap) as admin:
        fakes.add_topic("orders", [1, 2])
        assert admin.list_offsets({FIRST: LATEST, SECOND: LATEST}).check()[SECOND].offset == 0
        fakes.leaders["orders"] = [2, 1]
        fakes.seen.clear()
        assert len(admin.list_offsets({FIRST: LATEST, SECOND: LATEST}).check()) == 2
        asked = [node for node, api, _ in fakes.seen if api == ApiKey.LIST_OFFSETS]
        assert asked.count(1) == asked.count(2) == 2


def test_a_broker_that_is_gone_costs_only_its_own_partitions() -> None:
    with FakeCluster(nodes=2) as fakes, Admin(fakes.bootstrap) as admin:
        fakes.add_topic("orders", [1, 2])
        admin.list_offsets({FIRST: LATEST}).check()
        fakes.nodes[2].stop()
        found = admin.within(1).list_offsets({FIRST: LATEST, SECOND: LATEST})
        assert found[FIRST].offset == 0
        with pytest.raises(TimedOutError, match=r"not done within 1 s; broker 2: connection refused"):
            found[SECOND]


def test_a_silent_broker_costs_the_time_of_the_call() -> None:
    with FakeCluster() as fakes, Admin(fakes.bootstrap, request_timeout_ms=200) as admin:
        fakes.at(1, ApiKey.METADATA, *[Fault.SILENCE] * 20)
        with pytest.raises(TimedOutError, match=r"not done within 0\.5 s"):
            admin.within(0.5).list_topics()


def test_an_address_without_a_broker_is_reported_at_once_and_retried_by_the_next_call() -> None:
    with Admin("127.0.0.1:1", default_api_timeout_ms=60_000) as admin:
        for _ in range(2):
            with pytest.raises(UnreachableError, match=r"connection refused by 127\.0\.0\.1:1; is the broker running"):
                admin.list_topics()
    with (
        Admin("127.0.0.1:1,127.0.0.1:2") as admin,
        pytest.raises(UnreachableError, match=r"0\.1:1.*; .*0\.1:2"),
    ):
        admin.list_topics()
    with Broker() as broker, Admin(f"127.0.0.1:1,{broker.bootstrap}") as admin:
        assert admin.list_topics() == []


def test_an_api_that_the_broker_lacks_is_named() -> None:
    with FakeCluster() as fakes, Admin(fakes.bootstrap) as admin:
        with pytest.raises(KafkaError, match="does not offer ListTransactions") as caught:
            admin.list_transactions()
        assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
        assert admin.describe_cluster().nodes[0].node_id == 1  # by Metadata


def test_calls_of_many_tasks_share_the_connections() -> None:
    async def run(bootstrap: str) -> None:
        async with aio.Admin(bootstrap) as admin:
            await admin.create_topics([NewTopic("orders", 2)])
            places = {FIRST: LATEST, SECOND: LATEST}
            found = await asyncio.gather(*(admin.list_offsets(places) for _ in range(50)))
            assert all(len(each.check()) == 2 for each in found)
            assert len(admin._admin._machine.client.machines) <= 2
            task = asyncio.ensure_future(admin.list_topics())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert [topic.name for topic in await admin.list_topics()] == ["orders"]
        with pytest.raises(RuntimeError, match="closed"):
            await admin.list_topics()
        assert len(asyncio.all_tasks()) == 1

    with Broker() as broker:
        asyncio.run(run(broker.bootstrap))


def test_use_after_close_and_wrong_settings_are_named() -> None:
    with FakeCluster() as fakes:
        admin = Admin(fakes.bootstrap)
        admin.close()
        admin.close()
        with pytest.raises(RuntimeError, match="the administrator is closed"):
            admin.list_topics()
    with pytest.raises(TypeError, match="unknown setting 'request_timeout'; did you mean 'request_timeout_ms'"):
        Admin("127.0.0.1:9092", request_timeout=3)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="default_api_timeout_ms is -1"):
        Admin("127.0.0.1:9092", default_api_timeout_ms=-1)
    with pytest.raises(ValueError, match="is not an address"):
        Admin("host:port")
    with pytest.raises(RuntimeError, match="no event loop is running"):
        aio.Admin("127.0.0.1:9092")


def test_what_a_plan_raises_goes_to_its_caller_alone() -> None:
    async def run(bootstrap: str) -> None:
        async with aio.Admin(bootstrap) as admin:
            wrong, right = await asyncio.gather(
                admin.create_delegation_token(owner="nobody"), admin.list_topics(), return_exceptions=True
            )
            assert isinstance(wrong, ValueError)
            assert right == []

    with Broker() as broker:
        asyncio.run(run(broker.bootstrap))
