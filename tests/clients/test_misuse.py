"""What can be done wrong with each client, on both faces: one clear error each, and nothing left behind.

After close, in a forked child, without a running loop, with settings that are wrong. (A second thread is refused by
consumers only, `consumer/test_guard`; the others may be shared.)
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ixion.clients import Admin, Consumer, Producer, TopicPartition, aio
from tests.clients.fake import FakeCluster

PLACE = TopicPartition("orders", 0)
NOWHERE = "127.0.0.1:9"

BLOCKING: dict[str, tuple[Callable[..., Any], list[Callable[[Any], Any]]]] = {
    "producer": (
        Producer,
        [
            lambda it: it.send("orders", b"x"),
            lambda it: it.flush(),
            lambda it: it.poll(),
            lambda it: it.partitions_for("t"),
        ],
    ),
    "consumer": (
        Consumer,
        [lambda it: it.poll(), lambda it: it.assign([PLACE]), lambda it: it.position(PLACE), lambda it: it.commit()],
    ),
    "admin": (Admin, [lambda it: it.list_topics(), lambda it: it.describe_cluster()]),
}
ASYNC: dict[str, tuple[Callable[..., Any], list[Callable[[Any], Any]]]] = {
    "producer": (aio.Producer, [lambda it: it.send("orders", b"x"), lambda it: it.flush()]),
    "consumer": (aio.Consumer, [lambda it: it.poll(), lambda it: it.assign([PLACE]), lambda it: it.commit()]),
    "admin": (aio.Admin, [lambda it: it.list_topics(), lambda it: it.describe_cluster()]),
}
SETTINGS = {"producer": "linger_ms", "consumer": "fetch_min_bytes", "admin": "request_timeout_ms"}


def said(use: Callable[[], Any]) -> str:
    """The one line that it raises."""
    try:
        use()
    except (RuntimeError, ValueError) as error:
        text = str(error)
        assert "\n" not in text
        return text
    return "nothing"


@pytest.mark.parametrize("name", BLOCKING)
def test_after_close(name: str) -> None:
    make, uses = BLOCKING[name]
    before = set(threading.enumerate())
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        client = make(fakes.bootstrap)
        client.close()
        client.close()  # a second time does nothing
        for use in uses:
            assert f"{'administrator' if name == 'admin' else name} is closed" in said(lambda use=use: use(client))  # type: ignore[misc]
    assert not [each for each in set(threading.enumerate()) - before if each.name.startswith("ixion")]


@pytest.mark.parametrize("name", ASYNC)
def test_after_close_on_asyncio(name: str) -> None:
    make, uses = ASYNC[name]

    async def run() -> None:
        client = make(NOWHERE)
        await client.close()
        await client.close()
        for use in uses:
            with pytest.raises((RuntimeError, ValueError), match="is closed"):
                await use(client)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


@pytest.mark.parametrize("name", BLOCKING)
def test_in_a_forked_child(name: str) -> None:
    make, uses = BLOCKING[name]
    client = make(NOWHERE)
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:  # nothing of pytest may run here
        try:
            lines = [said(lambda use=use: use(client)) for use in uses]  # type: ignore[misc]
            os.write(writable, "\n".join(lines).encode())
        finally:
            os._exit(0)
    os.close(writable)
    with open(readable) as pipe:
        lines = pipe.read().splitlines()
    os.waitpid(child, 0)
    client.close()
    assert len(lines) == len(uses)
    for line in lines:
        assert "process" in line, line
        assert "fork" in line, line


@pytest.mark.parametrize("name", ASYNC)
def test_without_a_running_loop(name: str) -> None:
    make, _ = ASYNC[name]
    with pytest.raises(RuntimeError, match="inside a coroutine"):
        make(NOWHERE)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("face", ["blocking", "asyncio"])
def test_wrong_settings_are_named_at_once(name: str, face: str) -> None:
    make = (BLOCKING if face == "blocking" else ASYNC)[name][0]
    setting = SETTINGS[name]

    async def run() -> None:
        for wrong, kind, text in (
            ({setting + "s": 1}, (ValueError, TypeError), f"{setting}s.*did you mean.*{setting}"),
            ({setting: -1}, ValueError, setting),
            ({setting: "x"}, (ValueError, TypeError), setting),
            ({"client_id": 7}, (ValueError, TypeError), "client_id"),
        ):
            with pytest.raises(kind, match=text):
                make(NOWHERE, **wrong)
        with pytest.raises(ValueError, match="is not an address"):
            make("host:port")

    asyncio.run(run())
