"""A channel from one broker to another: it connects by itself, again after a fault, and leaves nobody waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from ixion.clients.address import Address
from ixion.clients.channel import Channel
from ixion.clients.faults import DisconnectedError, TimedOutError, UnreachableError
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataResponse
from ixion.language.protocol.registry import ApiKey
from tests.clients.fake import FakeCluster, Fault

VERSION = 12
ALL = MetadataRequest(topics=None)


def to(fakes: FakeCluster, **settings: float) -> Channel:
    return Channel(Address("127.0.0.1", fakes.nodes[1].port), "broker-7", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_requests_of_several_tasks_share_one_connection(run: Callable[[Coroutine[None, None, None]], None]) -> None:
    async def work(channel: Channel) -> None:
        answers = await asyncio.gather(*(channel.ask(ApiKey.METADATA, VERSION, ALL) for _ in range(5)))
        assert all(isinstance(answer, MetadataResponse) for answer in answers)
        assert channel.connected
        assert await channel.version(ApiKey.METADATA, newest=VERSION) == VERSION
        channel.close()
        with pytest.raises(DisconnectedError, match="was closed"):
            await channel.ask(ApiKey.METADATA, VERSION, ALL)

    with FakeCluster(nodes=1) as fakes:
        run(work(to(fakes)))
        assert fakes.count(ApiKey.API_VERSIONS) == 1, "one connection"


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.HALF, Fault.WRONG_ID, Fault.GARBAGE])
def test_a_request_fails_with_its_connection_and_the_next_makes_another(fault: Fault) -> None:
    async def work(channel: Channel) -> None:
        with pytest.raises(DisconnectedError):
            await channel.ask(ApiKey.METADATA, VERSION, ALL)
        assert isinstance(await channel.ask(ApiKey.METADATA, VERSION, ALL), MetadataResponse)
        channel.close()

    with FakeCluster(nodes=1) as fakes:
        fakes.at(1, ApiKey.METADATA, fault)
        asyncio.run(work(to(fakes)))


def test_a_silent_broker_is_left_after_the_request_timeout() -> None:
    async def work(channel: Channel) -> None:
        with pytest.raises(TimedOutError):
            await channel.ask(ApiKey.METADATA, VERSION, ALL)
        assert not channel.connected
        channel.close()

    with FakeCluster(nodes=1) as fakes:
        fakes.at(1, ApiKey.METADATA, Fault.SILENCE)
        asyncio.run(work(to(fakes, request_timeout_s=0.05)))


def test_a_connection_that_ends_before_the_first_request_is_sent_leaves_no_request_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect = Channel._connect

    async def connect_and_lose(channel: Channel) -> Any:
        link = await connect(channel)
        asyncio.get_running_loop().call_soon(link.connection_lost, None)  # before the task that asks has its turn
        return link

    async def work(channel: Channel) -> None:
        async with asyncio.timeout(60):
            with monkeypatch.context() as patched:
                patched.setattr(Channel, "_connect", connect_and_lose)
                with pytest.raises(DisconnectedError):
                    await channel.ask(ApiKey.METADATA, VERSION, ALL)
            assert isinstance(await channel.ask(ApiKey.METADATA, VERSION, ALL), MetadataResponse)
        channel.close()

    with FakeCluster(nodes=1) as fakes:
        asyncio.run(work(to(fakes)))


def test_a_channel_that_is_closed_as_it_connects_leaves_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    connect, made = Channel._connect, []

    async def connect_and_close(channel: Channel) -> Any:
        link = await connect(channel)
        made.append(link)
        asyncio.get_running_loop().call_soon(channel.close)  # before the channel gets its connection
        return link

    async def work(channel: Channel) -> None:
        async with asyncio.timeout(60):
            monkeypatch.setattr(Channel, "_connect", connect_and_close)
            with pytest.raises(DisconnectedError):
                await channel.ask(ApiKey.METADATA, VERSION, ALL)
            await asyncio.sleep(0)
            assert [link.machine.closed for link in made] == [True]

    with FakeCluster(nodes=1) as fakes:
        asyncio.run(work(to(fakes)))


def test_no_server_listens() -> None:
    async def work() -> None:
        channel = Channel(Address("127.0.0.1", 1), "broker-7")
        with pytest.raises(UnreachableError, match="cannot be reached"):
            await channel.ask(ApiKey.METADATA, VERSION, ALL)
        channel.close()

    asyncio.run(work())


def test_closing_ends_a_request_under_way() -> None:
    async def work(channel: Channel) -> None:
        await channel.ask(ApiKey.METADATA, VERSION, ALL)
        asked = asyncio.create_task(channel.ask(ApiKey.METADATA, VERSION, ALL))
        await asyncio.sleep(0)
        channel.close()
        with pytest.raises(DisconnectedError, match="was closed"):
            await asked

    with FakeCluster(nodes=1) as fakes:
        fakes.at(
            1, ApiKey.METADATA, lambda _: MetadataResponse(throttle_time_ms=0, brokers=(), topics=()), Fault.SILENCE
        )
        asyncio.run(work(to(fakes)))


def test_a_task_that_is_cancelled_while_its_channel_closes_ends() -> None:
    """A task that repeats after any KafkaError must not take its own cancellation for one."""

    async def repeat(channel: Channel) -> None:
        while True:
            try:
                await channel.ask(ApiKey.METADATA, VERSION, ALL)
            except DisconnectedError:
                await asyncio.sleep(0)

    async def work(channel: Channel) -> None:
        task = asyncio.create_task(repeat(channel))
        await asyncio.sleep(0)  # it waits for the connection
        task.cancel()
        channel.close()
        await asyncio.wait([task], timeout=60)
        assert task.cancelled()

    with FakeCluster(nodes=1) as fakes:
        asyncio.run(work(to(fakes)))
