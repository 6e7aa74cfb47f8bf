"""What a member of each client does within its group: it seeks, pauses, restarts as itself, shares, dies."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.testing import Broker
from tests.coordinators.group.members import MEMBERS, AioKafka, KafkaPython, Librdkafka, Member, Seen

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # kafka-python leaves sockets to the collector
ALL = {0, 1, 2, 3}
EACH = 10  # records in a partition


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"group.min.session.timeout.ms": 500}) as running:
        running.create_topic("t", 4)
        producer = Producer({"bootstrap.servers": running.bootstrap})
        for number in range(4 * EACH):
            producer.produce("t", b"%d" % number, partition=number % 4)
        assert producer.flush(40) == 0
        yield running


@pytest.fixture(params=MEMBERS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> type[Member]:
    found: type[Member] = request.param
    return found


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"


def share(*members: Member) -> bool:
    """Each has as many as the others, and all have all."""
    for member in members:
        member.poll()
    parts = [member.held() for member in members]
    return set().union(*parts) == ALL and all(len(part) * len(members) == 4 for part in parts)


def generation(broker: Broker, name: str) -> int:
    async def look(real: RealBroker) -> int:
        (group,) = (
            group
            for shard in real.parts.groups.get().shards
            for group in shard.groups.values()
            if group.group_id == name
        )
        assert isinstance(group, ClassicGroup)
        return group.generation

    return broker.call(look)


def test_seek_and_pause(broker: Broker, kind: type[Member]) -> None:
    member = kind(broker.bootstrap, f"seek-{kind.__name__}")
    seen: list[Seen] = []

    def saw(*wanted: Seen) -> bool:
        seen.extend(member.poll())
        return set(wanted) <= set(seen)

    until(lambda: saw(*(Seen(partition, offset) for partition in ALL for offset in range(EACH))))
    assert len(seen) == 4 * EACH
    seen.clear()
    member.pause(1)
    for partition in (0, 1):
        member.seek(partition, EACH - 2)
    until(lambda: saw(Seen(0, EACH - 2), Seen(0, EACH - 1)))
    assert {each.partition for each in seen} == {0}
    member.resume(1)
    until(lambda: saw(Seen(1, EACH - 2), Seen(1, EACH - 1)))
    assert len(seen) == 4
    member.close()


@pytest.mark.parametrize("kind", [KafkaPython, AioKafka])
def test_a_static_member_comes_back_to_what_it_had(broker: Broker, kind: type[Member]) -> None:
    group = f"static-{kind.__name__}"
    first, second = (kind(broker.bootstrap, group, f"i{number}") for number in (1, 2))
    until(lambda: share(first, second))
    had, at = second.held(), generation(broker, group)
    second.close()
    second = kind(broker.bootstrap, group, "i2")
    until(lambda: share(first, second))
    assert (second.held(), generation(broker, group)) == (had, at)
    first.close()
    second.close()


@pytest.mark.parametrize("kind", [Librdkafka, KafkaPython])
def test_a_cooperative_member_keeps_what_it_may(broker: Broker, kind: type[Member]) -> None:
    group = f"cooperative-{kind.__name__}"
    first = kind(broker.bootstrap, group, cooperative=True)
    until(lambda: share(first))
    second = kind(broker.bootstrap, group, cooperative=True)
    fewest = 4

    def shared() -> bool:
        nonlocal fewest
        done = share(first, second)
        fewest = min(fewest, len(first.held()))
        return done

    until(shared)
    assert fewest == 2
    second.close()
    until(lambda: share(first))
    first.close()


VICTIM = """
import sys
from tests.coordinators.group import members
members.SESSION_MS = 1000
victims = [kind(sys.argv[1], f"dies-{kind.__name__}") for kind in members.MEMBERS]
while not all(victim.held() for victim in victims):
    for victim in victims:
        victim.poll()
print("assigned", flush=True)
while True:
    for victim in victims:
        victim.poll()
"""


def test_members_that_are_killed_are_replaced(broker: Broker) -> None:
    command = [sys.executable, "-W", "ignore", "-c", VICTIM, broker.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "assigned\n"
        finally:
            process.kill()
    heirs = [Librdkafka(broker.bootstrap, f"dies-{kind.__name__}") for kind in MEMBERS]
    until(lambda: [share(heir) for heir in heirs] == [True] * len(heirs))
    for heir in heirs:
        heir.close()
