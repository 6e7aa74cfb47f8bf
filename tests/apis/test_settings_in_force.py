"""Settings that are changed while the broker runs, by any tool, hold from then on and after a restart."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient

from ixion.broker.metadata import paths
from ixion.broker.metadata.config_node import encode_config
from ixion.broker.metadata.node import Create, Operation, Set
from ixion.broker.metadata.notification_node import encode_config_change
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.config.dynamic import Source
from ixion.language.model.errors import ErrorCode
from ixion.testing.broker import Broker
from tests.apis.asking import Asking
from tests.apis.filling import fill
from tests.apis.settings import BROKER, DELETE, SET, TOPIC, change, must_set, setting

ID = "5"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"broker.id": ID}) as running:
        running.create_topic("t")
        running.create_topic("short", segment_bytes=300)
        yield running


def send(broker: Broker, size: int) -> KafkaError | None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 10_000_000, "retries": 0})
    told: list[KafkaError | None] = []
    producer.produce("t", b"x" * size, on_delivery=lambda error, _message: told.append(error))
    assert producer.flush(20) == 0
    return told[0]


def too_large(broker: Broker, size: int) -> bool:
    error = send(broker, size)
    assert error is None or error.code() == KafkaError.MSG_SIZE_TOO_LARGE
    return error is not None


def wait_until(holds: Callable[[], bool]) -> None:
    """For what other threads do soon."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_the_largest_batch_of_topics_and_brokers(broker: Broker, asking: Asking) -> None:
    assert not too_large(broker, 50_000)
    must_set(asking, BROKER, "", {"message.max.bytes": "10000"})
    assert too_large(broker, 50_000)
    must_set(asking, BROKER, ID, {"message.max.bytes": "60000"})
    assert not too_large(broker, 50_000)
    must_set(asking, TOPIC, "t", {"max.message.bytes": "20000"})
    assert too_large(broker, 50_000)
    assert not too_large(broker, 15_000)
    assert change(asking, TOPIC, "t", [("max.message.bytes", DELETE, None)])[0] == ErrorCode.NONE
    assert not too_large(broker, 50_000)


def test_retention(broker: Broker, asking: Asking) -> None:
    fill(broker.bootstrap, "short", count=20)

    async def look_after(real: RealBroker) -> int:
        await real.parts.loop.run_in_executor(None, real.parts.logs.look_after)
        return real.parts.replicas.partitions["short", 0].log.log_start

    assert broker.call(look_after) == 0
    must_set(asking, BROKER, "", {"log.retention.bytes": "600"})
    assert 0 < broker.call(look_after) < 20
    must_set(asking, TOPIC, "short", {"retention.ms": "1"})
    # All that is in it is older than a millisecond, and goes.
    wait_until(lambda: broker.call(look_after) == 20)


def served(connections: list[Asking]) -> int:
    """How many of them are answered."""
    count = 0
    for each in connections:
        try:
            count += setting(each, TOPIC, "t", "retention.ms").value is not None
        except OSError:
            pass
    return count


def test_how_many_connections_an_address_may_have(broker: Broker, asking: Asking) -> None:
    def of_four_more() -> int:
        with ExitStack() as opened:
            return served([opened.enter_context(Asking(broker.bootstrap)) for _ in range(4)])

    assert of_four_more() == 4
    must_set(asking, BROKER, "", {"max.connections.per.ip": "3"})
    wait_until(lambda: of_four_more() == 2)  # those before have been seen to be closed
    assert change(asking, BROKER, "", [("max.connections.per.ip", DELETE, None)])[0] == ErrorCode.NONE
    assert of_four_more() == 4


def test_a_lowered_limit_closes_what_is_too_much(broker: Broker, asking: Asking) -> None:
    with ExitStack() as opened:
        others = [opened.enter_context(Asking(broker.bootstrap)) for _ in range(3)]
        assert served(others) == 3
        must_set(asking, BROKER, ID, {"max.connections.per.ip": "2"})
        assert served([asking, *others]) == 2


def test_how_fast_connections_may_come(broker: Broker, asking: Asking) -> None:
    async def accepted(real: RealBroker) -> int:
        return real.parts.server.snapshot().accepted

    must_set(asking, BROKER, "", {"max.connection.creation.rate": "0"})
    before = broker.call(accepted)
    with Asking(broker.bootstrap) as waiting:
        assert served([asking]) == 1
        assert broker.call(accepted) == before
        assert change(asking, BROKER, "", [("max.connection.creation.rate", DELETE, None)])[0] == ErrorCode.NONE
        assert served([waiting]) == 1


def test_how_hard_the_broker_tries_to_compress(broker: Broker, asking: Asking) -> None:
    words = " ".join(random.Random(7).choices([str(number * number) for number in range(900)], k=20_000)).encode()
    sizes = []
    for level in (1, 9):
        must_set(asking, TOPIC, "t", {"compression.type": "gzip", "compression.gzip.level": str(level)})
        before = broker.call(size_of_t)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("t", words)
        assert producer.flush(20) == 0
        sizes.append(broker.call(size_of_t) - before)
    assert len(words) / 2 > sizes[0] > sizes[1] > 0


async def size_of_t(real: RealBroker) -> int:
    return real.parts.replicas.partitions["t", 0].log.size


def test_handlers(broker: Broker, asking: Asking) -> None:
    async def handlers(real: RealBroker) -> int:
        return max(channel.handlers for channel in real.parts.server._channels)

    assert broker.call(handlers) == 8
    must_set(asking, BROKER, ID, {"num.io.threads": "11"})
    assert broker.call(handlers) == 11


def test_compaction() -> None:
    given = {"broker.id": ID, "log.cleaner.backoff.ms": 20}
    with Broker(given) as broker, Asking(broker.bootstrap) as asking:
        broker.create_topic("c", cleanup_policy="compact", segment_bytes=300, min_cleanable_dirty_ratio=1)
        fill(broker.bootstrap, "c", count=30, key=b"k")

        async def size(real: RealBroker) -> int:
            return real.parts.replicas.partitions["c", 0].log.size

        before = broker.call(size)
        must_set(asking, BROKER, "", {"log.cleaner.dedupe.buffer.size": "2000000"})
        must_set(asking, TOPIC, "c", {"min.cleanable.dirty.ratio": "0.01"})
        wait_until(lambda: broker.call(size) < before / 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("listeners", "PLAINTEXT://127.0.0.1:1"),
        ("advertised.listeners", "PLAINTEXT://127.0.0.1:1"),
        ("num.network.threads", "1"),
        ("background.threads", "1"),
    ],
)
def test_what_is_fixed_while_the_broker_runs(asking: Asking, name: str, value: str) -> None:
    code, message = change(asking, BROKER, ID, [(name, SET, value)])
    assert code == ErrorCode.INVALID_REQUEST
    assert f"{name} is '{value}', but must be left as it is while the broker runs" == message


def write_as_another_would(broker: Broker, kind: str, entity: str, config: dict[str, str]) -> None:
    """Straight into the tree, with a notice: what Kafka's brokers of ZooKeeper's days and their tools do."""

    async def write(real: RealBroker) -> None:
        session = real.parts.session
        path = paths.config(kind, entity)
        data = encode_config(config)
        first: Operation = Create(path, data) if await session.exists(path) is None else Set(path, data)
        notice = Create(paths.NEW_CONFIG_CHANGE, encode_config_change(f"{kind}/{entity}"), sequential=True)
        await session.multi([first, notice])

    broker.call(write)


def test_changes_in_the_tree_are_followed(broker: Broker, asking: Asking) -> None:
    write_as_another_would(broker, "topics", "t", {"max.message.bytes": "10000"})
    wait_until(lambda: setting(asking, TOPIC, "t", "max.message.bytes").value == "10000")
    assert too_large(broker, 50_000)
    write_as_another_would(broker, "topics", "t", {})
    wait_until(lambda: setting(asking, TOPIC, "t", "max.message.bytes").value != "10000")
    assert not too_large(broker, 50_000)
    write_as_another_would(broker, "brokers", paths.DEFAULT_ENTITY, {"message.max.bytes": "10000"})
    wait_until(lambda: setting(asking, BROKER, ID, "message.max.bytes").config_source == Source.DYNAMIC_DEFAULT)
    assert too_large(broker, 50_000)
    # The tree accepts any value. The broker leaves out settings that are invalid; the others hold.
    write_as_another_would(broker, "brokers", ID, {"message.max.bytes": "60000", "log.retention.ms": "soon"})
    wait_until(lambda: setting(asking, BROKER, ID, "message.max.bytes").config_source == Source.DYNAMIC_BROKER)
    assert not too_large(broker, 50_000)
    assert setting(asking, BROKER, ID, "log.retention.ms").value is None


def test_settings_survive_a_restart(tmp_path: Path) -> None:
    with Broker({"broker.id": ID}, data=str(tmp_path)) as running, Asking(running.bootstrap) as asking:
        running.create_topic("t")
        must_set(asking, TOPIC, "t", {"max.message.bytes": "20000"})
        must_set(asking, BROKER, "", {"log.retention.ms": "70000"})
        must_set(asking, BROKER, ID, {"max.connections.per.ip": "60"})
    with Broker({"broker.id": ID}, data=str(tmp_path)) as running, Asking(running.bootstrap) as asking:
        assert too_large(running, 50_000)
        assert setting(asking, TOPIC, "t", "retention.ms").value == "70000"
        assert setting(asking, BROKER, ID, "max.connections.per.ip").value == "60"


def test_a_deleted_topic_takes_its_settings_along(broker: Broker, asking: Asking) -> None:
    must_set(asking, TOPIC, "t", {"max.message.bytes": "20000"})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics(["t"])["t"].result(20)
    broker.create_topic("t")
    assert setting(asking, TOPIC, "t", "max.message.bytes").config_source == Source.DEFAULT
