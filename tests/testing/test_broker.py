"""`ixion.testing.Broker`: its life, its data, and its messages when it is used wrongly."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.broker.startup.errors import StartupError
from ixion.config.errors import InvalidSettingError
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.testing import Broker
from ixion.testing import broker as module


def produce(broker: Broker, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "linger.ms": 0})
    failed: list[object] = []
    for value in values:
        producer.produce("t", value, on_delivery=lambda error, _message: failed.append(error) if error else None)
    assert producer.flush(30) == 0
    assert failed == []


def read(broker: Broker, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[bytes] = []
    while len(found) < count:
        message = consumer.poll(30)
        assert message is not None, f"only {len(found)} of {count} came"
        assert message.error() is None
        found.append(bytes(message.value() or b""))
    consumer.close()
    return found


def log_dir(broker: Broker) -> str:
    async def paths(real: RealBroker) -> list[str]:
        return real.parts.paths

    return broker.call(paths)[0]


def test_records_go_in_and_come_out() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        produce(broker, b"one", b"two")
        assert read(broker, 2) == [b"one", b"two"]


def test_records_of_long_ago_stay() -> None:
    """Tests like fixed times, and retention does not wait for a test to end."""

    async def look_after(real: RealBroker) -> None:
        real.parts.logs.look_after()

    with Broker() as broker:
        broker.create_topic("t")
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("t", b"old", timestamp=1)
        assert producer.flush(30) == 0
        broker.call(look_after)
        assert read(broker, 1) == [b"old"]


def test_the_temporary_directory_is_gone_with_the_broker() -> None:
    with Broker() as broker:
        path = log_dir(broker)
        assert os.path.isdir(path)
    assert not os.path.exists(path)


def test_in_memory_where_there_is_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "MEMORY", str(tmp_path))
    with Broker(memory=True) as broker:
        assert Path(log_dir(broker)).parent == tmp_path
    monkeypatch.setattr(module, "MEMORY_MIN", 1 << 62)
    with Broker(memory=True) as broker:
        assert Path(log_dir(broker)).parent != tmp_path


def test_data_that_stays_is_found_by_the_next(tmp_path: Path) -> None:
    broker = Broker(data=tmp_path / "data")
    with broker:
        produce(broker, b"one")
    with broker:  # the same object may start again
        produce(broker, b"two")
    with Broker(data=str(tmp_path / "data")) as another:
        assert read(another, 2) == [b"one", b"two"]


def test_a_killed_broker_leaves_what_a_crash_leaves(tmp_path: Path) -> None:
    broker = Broker(data=tmp_path)
    broker.start()
    produce(broker, b"one", b"two")
    broker.kill()
    assert not broker.running
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    with broker:
        produce(broker, b"three")
        assert read(broker, 3) == [b"one", b"two", b"three"]
    assert (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("listeners", ["PLAINTEXT://127.0.0.1:0", "A://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"])
@pytest.mark.parametrize("end", [Broker.stop, Broker.kill])
def test_it_comes_back_at_its_address_with_topics_and_records(end: Callable[[Broker], None], listeners: str) -> None:
    protocols = "A:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    settings = {
        "listeners": listeners,
        "listener.security.protocol.map": protocols,
        "inter.broker.listener.name": "PLAINTEXT",
    }
    with Broker(settings, metrics=True) as broker:
        broker.create_topic("three", 3, retention_ms=12345)
        produce(broker, b"one")
        ports = [endpoint.port for endpoint in broker._running()[1].endpoints]
        places = broker.bootstrap, broker.metrics_url
        end(broker)
        assert not broker.running
        broker.start()
        assert (broker.bootstrap, broker.metrics_url) == places
        assert [endpoint.port for endpoint in broker._running()[1].endpoints] == ports
        produce(broker, b"two")
        assert read(broker, 2) == [b"one", b"two"]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        assert len(admin.list_topics("three", timeout=30).topics["three"].partitions) == 3


def test_if_its_port_is_taken_it_comes_back_at_another() -> None:
    with Broker() as broker:
        produce(broker, b"one")
        host, _, port = broker.bootstrap.partition(":")
        broker.stop()
        with socket.create_server((host, int(port))):
            broker.start()
        assert broker.bootstrap != f"{host}:{port}"
        assert read(broker, 1) == [b"one"]


def test_temporary_data_is_deleted_with_the_block_or_with_the_broker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Broker() as broker:
        broker.stop()
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []
    with broker:  # a new block begins with nothing
        assert AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=30).topics == {}
    another = Broker().start()
    another.stop()
    assert len(list(tmp_path.iterdir())) == 1
    del another
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_stopping_twice_is_harmless() -> None:
    broker = Broker().start()
    broker.stop()
    broker.stop()
    assert not broker.running


def test_starting_twice_is_an_error() -> None:
    with Broker() as broker, pytest.raises(RuntimeError, match="running already"):
        broker.start()


def test_using_a_broker_before_it_runs_is_an_error() -> None:
    broker = Broker()
    for use in (lambda: broker.bootstrap, lambda: broker.create_topic("t"), broker.kill, lambda: broker.metrics_url):
        with pytest.raises(RuntimeError, match="with Broker\\(\\) as broker"):
            use()


def test_a_wrong_setting_is_raised_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(InvalidSettingError, match=r"num\.partitions is 'x'"):
        Broker({"num.partitions": "x"}).start()
    assert list(tmp_path.iterdir()) == []


def test_a_setting_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"unknown setting num\.partitoins; did you mean 'num\.partitions'"):
        Broker({"num.partitoins": 3}).start()


def test_a_failed_start_is_raised_and_can_be_repeated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        broker = Broker({"listeners": f"PLAINTEXT://127.0.0.1:{port}"})
        with pytest.raises(StartupError, match="is in use"):
            broker.start()
    assert list(tmp_path.iterdir()) == []
    with broker:
        assert broker.bootstrap == f"127.0.0.1:{port}"


def test_one_directory_one_broker(tmp_path: Path) -> None:
    with Broker(data=tmp_path), pytest.raises(StartupError):
        Broker(data=tmp_path).start()


def test_data_and_memory_contradict_each_other(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one of data and memory"):
        Broker(data=tmp_path, memory=True)


def test_topics_get_their_settings_and_refuse_wrong_ones() -> None:
    with Broker({"auto.create.topics.enable": False}) as broker:
        broker.create_topic("compacted", 3, cleanup_policy="compact", **{"segment.bytes": 1 << 20})
        with pytest.raises(KafkaError) as caught:
            broker.create_topic("compacted")
        assert caught.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        assert len(admin.list_topics("compacted", timeout=30).topics["compacted"].partitions) == 3
        with pytest.raises(KafkaException):
            Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"}).get_watermark_offsets(
                TopicPartition("missing", 0), timeout=30
            )


def test_for_those_on_a_loop_of_their_own() -> None:
    async def use() -> str:
        async with Broker() as broker:
            broker.create_topic("t")
            return broker.bootstrap

    assert asyncio.run(use()).startswith("127.0.0.1:")


def test_the_brokers_own_thread_must_not_wait_for_itself() -> None:
    with Broker() as broker:

        async def wait_for_itself(_real: RealBroker) -> None:
            broker.create_topic("t")

        with pytest.raises(RuntimeError, match="own thread"):
            broker.call(wait_for_itself)


def test_a_broker_that_stands_still_is_an_error_that_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker().start()
    loop, thread = broker._running()[0], broker._thread
    stands, go_on = threading.Event(), threading.Event()
    assert thread is not None

    def stand_still() -> None:
        stands.set()
        go_on.wait()

    async def nothing(_real: RealBroker) -> None: ...

    loop.call_soon_threadsafe(stand_still)
    assert stands.wait(60)
    monkeypatch.setattr(module, "PATIENCE_S", 0.1)
    with pytest.raises(
        TimeoutError, match=r"not do what it was called for within 0.1 s: its thread is at .*stand_still"
    ):
        broker.call(nothing)
    with pytest.raises(TimeoutError, match=r"the broker did not end within 0.1 s: its thread is at .*stand_still"):
        broker.kill()
    assert not broker.running
    go_on.set()
    thread.join(60)
    assert not thread.is_alive()


def test_a_stop_that_takes_long_can_name_the_part_and_the_tasks() -> None:
    broker = Broker().start()
    loop, real = broker._running()
    reached, go_on = threading.Event(), asyncio.Event()

    async def stop() -> None:
        reached.set()
        await go_on.wait()

    real.parts.undo.append(("part of this test", stop))
    stopping = threading.Thread(target=broker.stop)
    stopping.start()
    assert reached.wait(60)
    said = broker._where()
    loop.call_soon_threadsafe(go_on.set)
    stopping.join(60)
    assert not stopping.is_alive()
    assert said.startswith("it is stopping the part of this test; its thread is at ")
    assert re.search(r"; task \S+ waits at ", said)
