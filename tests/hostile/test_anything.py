"""Whatever can be read is answered, or waits; no handler gives up, and no key brings the broker down."""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from ixion.broker.apis.served import SERVED
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.hostile.anything import Anything
from tests.hostile.inputs import asked
from tests.hostile.witness import ask, connect, take

REQUESTS = int(os.environ.get("IXION_ANYTHING", "60"))  # of each key


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": 0}) as running:
        running.create_topic("t", 2)
        running.create_topic("u")
        yield running


async def failures(real: RealBroker) -> int:
    return real.parts.server.snapshot().closed.get("handler_failed", 0)


async def topic_ids(real: RealBroker) -> list[bytes]:
    return [topic.topic_id for topic in real.parts.image.topics.values()]


@pytest.mark.parametrize("key", SERVED, ids=lambda key: key.stem)
def test_no_handler_gives_up(broker: Broker, key: ApiKey, caplog: pytest.LogCaptureFixture) -> None:
    anything = Anything(zlib.crc32(key.stem.encode()), broker.call(topic_ids))
    before = broker.call(failures)
    with ExitStack() as clients:
        ask_anything(broker, [key] * REQUESTS, anything, clients, before, caplog)
    with connect(broker.bootstrap) as other:
        ask(other)


@pytest.mark.parametrize("seed", range(3))
def test_nor_when_one_comes_after_the_other(broker: Broker, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """What one key has left behind is what the next one finds."""
    anything = Anything(seed, broker.call(topic_ids))
    keys = random.Random(seed).choices(SERVED, k=REQUESTS * 5)
    with ExitStack() as clients:
        ask_anything(broker, keys, anything, clients, broker.call(failures), caplog)


def ask_anything(
    broker: Broker,
    keys: list[ApiKey],
    anything: Anything,
    clients: ExitStack,
    before: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = clients.enter_context(connect(broker.bootstrap))
    for number, key in enumerate(keys):
        version = key.oldest + number % (key.newest - key.oldest + 1)
        request = anything.of(key.request_table, version)
        client.settimeout(0.3)
        try:
            client.sendall(asked(int(key), version, request))
            answered = take(client) is not None
        except TimeoutError:
            answered = False  # it waits for others, as a member of a group may; or acks=0 was asked for
        except OSError:
            answered = False
        if not answered:
            client.close()
            client = clients.enter_context(connect(broker.bootstrap))
        assert broker.call(failures) == before, f"{key.title} version {version}: {request}\n{caplog.text[-3000:]}"
