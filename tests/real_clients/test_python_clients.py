"""What applications do: write with any acks and codec, read from anywhere, ask for offsets, wait for what comes."""

from __future__ import annotations

import os
import threading

import pytest

from ixion.testing import Broker
from tests.real_clients.drivers import CODECS, DRIVERS, Driver, Message

NOW = 1_700_000_000_000
EVERY_KIND = [
    Message(b"key", b"value", (("a", b"1"), ("a", b"2"), ("empty", b"")), NOW),
    Message(None, b"no key", (), NOW + 1),
    Message(b"no value", None, (), NOW + 2),
    Message(b"", b"", (), NOW + 3),
    Message("schlüssel".encode(), "wert \N{SNOWMAN}".encode(), (("käse", b"ja"),), NOW + 4),
    Message(b"large", bytes(range(256)) * 400, (), NOW + 5),
]


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_acks(broker: Broker, topic: str, driver: Driver, acks: int) -> None:
    messages = [Message(b"k", b"%d" % number) for number in range(20)]
    offsets = driver.produce(broker.bootstrap, topic, messages, acks=acks)
    assert acks == 0 or offsets == list(range(20))
    assert driver.read(broker.bootstrap, topic, 0, 20) == messages


@pytest.mark.parametrize("reader", DRIVERS, ids=lambda driver: f"to {driver.name}")
@pytest.mark.parametrize("codec", CODECS)
def test_every_kind_of_message_from_each_client_to_each(
    broker: Broker, topic: str, driver: Driver, reader: Driver, codec: str
) -> None:
    if reader is not driver and os.environ.get("IXION_EXPECT") == "interpreted":
        pytest.skip("the same in both runs; done in the compiled one")
    driver.produce(broker.bootstrap, topic, EVERY_KIND, codec=codec)
    assert reader.read(broker.bootstrap, topic, 0, len(EVERY_KIND)) == EVERY_KIND


def test_a_big_message(broker: Broker, topic: str, driver: Driver) -> None:
    messages = [Message(b"k", b"small"), Message(b"k", b"x" * (4 << 20)), Message(b"k", b"after")]
    driver.produce(broker.bootstrap, topic, messages)
    assert driver.read(broker.bootstrap, topic, 0, 3) == messages


def test_a_message_that_is_too_big_is_refused_and_the_next_is_not(broker: Broker, topic: str, driver: Driver) -> None:
    broker.create_topic(f"{topic}-tight", max_message_bytes=1000)
    with pytest.raises(Exception, match=r"(?i)too.?large|MSG_SIZE|MessageSize"):
        driver.produce(broker.bootstrap, f"{topic}-tight", [Message(b"k", b"x" * 5000)])
    assert driver.produce(broker.bootstrap, f"{topic}-tight", [Message(b"k", b"x")]) == [0]


def test_seeking(broker: Broker, topic: str, driver: Driver) -> None:
    """All fifty are in one or two batches, so each of these begins in the middle of one."""
    messages = [Message(b"k", b"%d" % number) for number in range(50)]
    driver.produce(broker.bootstrap, topic, messages, codec="lz4")
    for offset in (49, 25, 1, 0):
        assert driver.read(broker.bootstrap, topic, offset, 1) == [messages[offset]]
    assert driver.read(broker.bootstrap, topic, 10, 40) == messages[10:]


def test_offsets_and_times(broker: Broker, topic: str, driver: Driver) -> None:
    assert driver.ends(broker.bootstrap, topic) == (0, 0)
    assert driver.at_time(broker.bootstrap, topic, NOW) is None
    times = (100, 300, 300, 500)
    driver.produce(broker.bootstrap, topic, [Message(b"k", b"v", (), NOW + time) for time in times])
    assert driver.ends(broker.bootstrap, topic) == (0, 4)
    for time, offset in ((0, 0), (101, 1), (300, 1), (301, 3), (500, 3)):
        assert driver.at_time(broker.bootstrap, topic, NOW + time) == offset
    assert driver.at_time(broker.bootstrap, topic, NOW + 501) is None


def test_a_reader_that_waits_gets_what_comes(broker: Broker, topic: str, driver: Driver) -> None:
    message = Message(b"k", b"late")
    found: list[Message] = []
    reader = threading.Thread(target=lambda: found.extend(driver.read(broker.bootstrap, topic, 0, 1)))
    reader.start()
    waits = broker.call(_fetch_waits)
    while not waits and reader.is_alive():
        waits = broker.call(_fetch_waits)
    driver.produce(broker.bootstrap, topic, [message])
    reader.join(20)
    assert found == [message]


async def _fetch_waits(real: object) -> bool:
    from ixion.broker.startup.broker import Broker as RealBroker

    assert isinstance(real, RealBroker)
    return real.parts.replicas.fetch_purgatory.delayed > 0


def test_an_idempotent_producer(broker: Broker, topic: str, driver: Driver) -> None:
    messages = [Message(b"k", b"%d" % number) for number in range(200)]
    assert driver.produce(broker.bootstrap, topic, messages, idempotent=True, codec="zstd") == list(range(200))
    assert driver.read(broker.bootstrap, topic, 0, 200, committed=True) == messages


def test_topics_that_were_not_created(broker: Broker, driver: Driver) -> None:
    name = f"auto-{driver.name}"
    assert driver.produce(broker.bootstrap, name, [Message(b"k", b"v")]) == [0]
    assert driver.read(broker.bootstrap, name, 0, 1) == [Message(b"k", b"v")]
