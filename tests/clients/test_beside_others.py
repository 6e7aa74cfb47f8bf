"""One table of scenarios through our clients in both faces, confluent-kafka and aiokafka: what their users see.

Records, callbacks and errors are compared, in their order. Where another library shows something else on purpose, the
table says what and why; a row that is no longer true fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from ixion.clients import Admin
from ixion.testing import Broker
from tests.clients.beside import LIBRARIES, Library

pytestmark = pytest.mark.slow
numbers = itertools.count()
SETTINGS: Final = {"auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"beside-{next(numbers)}"
    broker.create_topic(name, 2)
    return name


def fill(broker: Broker, topic: str, *values: bytes) -> None:
    with LIBRARIES[0].producer(broker.bootstrap) as producer:
        for value in values:
            producer.send(topic, value)


def take(consumer: Any, count: int) -> None:
    """Poll until so many records have come, and write them down."""
    found: list[bytes] = []
    while len(found) < count:
        found += consumer.poll()
    consumer.seen += [value.decode() for value in found]


def deliveries(library: Library, broker: Broker, topic: str) -> list[str]:
    """Callbacks come in the order of the sends."""
    with library.producer(broker.bootstrap) as producer:
        for number in range(5):
            producer.send(topic, b"%d" % number)
        producer.flush()
        return list(producer.seen)


def too_large(library: Library, broker: Broker, topic: str) -> list[str]:
    """A record that is too large is refused by `send`, and harms no other."""
    with library.producer(broker.bootstrap, limit=2000) as producer:
        producer.send(topic, b"small")
        producer.note(lambda: producer.send(topic, b"x" * 3000), "send")
        producer.send(topic, b"later")
        producer.flush()
        return sorted(producer.seen)  # the callbacks may come before or after


def aborted(library: Library, broker: Broker, topic: str) -> list[str]:
    """Records of an aborted transaction are not read; those of a committed one are."""
    with library.producer(broker.bootstrap, id=topic) as producer:
        producer.init()
        for value, end in ((b"one", "commit"), (b"two", "abort"), (b"three", "commit")):
            producer.begin()
            producer.send(topic, value)
            producer.flush()
            getattr(producer, end)()
        seen = list(producer.seen)
    with library.consumer(
        broker.bootstrap, topic, topic, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        take(consumer, 2)
        return [*seen, *(each for each in consumer.seen if "[" not in each)]


def fenced(library: Library, broker: Broker, topic: str) -> list[str]:
    """Each call of a producer whose transactional id has another owner raises an error that says so."""
    with library.producer(broker.bootstrap, id=topic) as old:
        old.init()
        old.begin()
        old.send(topic, b"old")
        old.flush()
        with library.producer(broker.bootstrap, id=topic) as new:
            new.init()
            old.note(old.commit, "commit")
            old.note(old.begin, "begin")
        return list(old.seen)


def life_of_a_member(library: Library, broker: Broker, topic: str) -> list[str]:
    """Assigned, records, revoked at the end; what was returned is committed."""
    fill(broker, topic, b"a", b"b")
    with library.consumer(broker.bootstrap, topic, topic, auto_offset_reset="earliest") as consumer:
        take(consumer, 2)
    fill(broker, topic, b"c")
    with library.consumer(broker.bootstrap, topic, topic, auto_offset_reset="earliest") as again:
        take(again, 1)
    return [*consumer.seen, "again", *again.seen]


def second_member(library: Library, broker: Broker, topic: str) -> list[str]:
    """Another member takes a partition: the first one gives up both, and gets one back."""
    with library.consumer(broker.bootstrap, topic, topic) as first:
        while first.held() < 2:
            first.poll()
        with LIBRARIES[0].consumer(broker.bootstrap, topic, topic, heartbeat_interval_ms=100) as second:
            while second.held() < 1 or first.held() != 1:
                second.poll()
                first.poll()
            return [each.replace("[0]", "one").replace("[1]", "one") for each in first.seen]  # member ids decide which


def removed(library: Library, broker: Broker, topic: str) -> list[str]:
    """A member that was removed from its group cannot commit, and joins again."""
    fill(broker, topic, b"a")
    with library.consumer(
        broker.bootstrap, topic, topic, auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        take(consumer, 1)
        with Admin(broker.bootstrap) as admin:
            admin.remove_members(topic)
        consumer.note(consumer.commit, "commit")
        take(consumer, 1)
        return [each for each in consumer.seen if "[" not in each]


def closed(library: Library, broker: Broker, topic: str) -> list[str]:
    """A client that was closed says so, and may be closed again."""
    with library.consumer(broker.bootstrap, topic, topic) as consumer:
        consumer.close()
        consumer.seen.clear()
        consumer.note(consumer.commit, "commit")
        return list(consumer.seen)


def no_offset(library: Library, broker: Broker, topic: str) -> list[str]:
    """Without an offset and a policy poll raises."""
    with library.consumer(broker.bootstrap, topic, topic, auto_offset_reset="none") as consumer:
        while not any(each.startswith("poll:") for each in consumer.seen):
            before = list(consumer.seen)
            consumer.note(consumer.poll, "poll")
            if consumer.seen[-1] == "poll":
                consumer.seen = [*before, *(each for each in consumer.seen[len(before) :] if each != "poll")]
        return list(consumer.seen)


def seek_and_pause(library: Library, broker: Broker, topic: str) -> list[str]:
    """A seek moves the position; a paused partition returns nothing until it is resumed."""
    fill(broker, topic, b"a", b"b", b"c")
    with library.consumer(broker.bootstrap, topic, topic, auto_offset_reset="earliest") as consumer:
        take(consumer, 3)
        consumer.seek(1)
        take(consumer, 2)
        consumer.seen.append(f"position {consumer.position()}")
        consumer.pause()
        consumer.seek(0)
        for _ in range(4):
            consumer.seen += [value.decode() for value in consumer.poll()]
        consumer.seen.append("resumed")
        consumer.resume()
        take(consumer, 3)
        consumer.commit()
        consumer.seen.append(f"committed {consumer.committed()}")
        return list(consumer.seen)


SCENARIOS: Final[dict[Callable[[Library, Broker, str], list[str]], list[str]]] = {
    deliveries: ["0 at 0", "1 at 1", "2 at 2", "3 at 3", "4 at 4"],
    too_large: ["later at 1", "send: MESSAGE_TOO_LARGE", "small at 0"],
    aborted: ["one at 0", "two at 2", "three at 4", "one", "three"],
    fenced: ["old at 0", "commit: fenced", "begin: fenced"],
    life_of_a_member: [
        "assigned [0, 1]",
        "a",
        "b",
        "revoked [0, 1]",
        "again",
        "assigned [0, 1]",
        "c",
        "revoked [0, 1]",
    ],
    second_member: ["assigned [0, 1]", "revoked [0, 1]", "assigned one"],
    removed: ["a", "commit: removed", "a"],
    closed: ["commit: closed"],
    no_offset: ["assigned [0, 1]", "poll: no offset"],
    seek_and_pause: ["assigned [0, 1]", *"abcbc", "position 3", "resumed", *"abc", "committed 3"],
}
# What another library shows instead, and why.
DIFFERENT: Final[dict[tuple[str, Any], list[str]]] = {
    ("aiokafka", fenced): ["old at 0", "commit: fenced", "begin: AssertionError"],
    ("aiokafka", closed): ["commit"],  # a stopped consumer commits nothing, and says nothing
    # Its consumer calls no listener when it is stopped.
    ("aiokafka", life_of_a_member): ["assigned [0, 1]", "a", "b", "again", "assigned [0, 1]", "c"],
}


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_its_user_sees_the_same(
    broker: Broker, topic: str, scenario: Callable[[Library, Broker, str], list[str]], library: Library
) -> None:
    expected = DIFFERENT.get((library.name, scenario), SCENARIOS[scenario])
    assert scenario(library, broker, topic) == expected
