"""What a user imports and calls: the same names, errors and helpers in both faces and all clients."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import pydoc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devtools.cache import CHECKOUT
from ixion import clients
from ixion.clients import TopicPartition, aio
from ixion.clients.described import docstring_of
from ixion.clients.faults import FencedError, TimedOutError
from ixion.testing import Broker
from tests.clients.faces import FACES, Face

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
WAIT_S = 45.0
numbers = itertools.count()
KINDS = ("consumer", "share_consumer", "producer", "admin")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"surface-{next(numbers)}"
    broker.create_topic(name, 2)
    return name


@pytest.fixture(params=FACES, ids=lambda face: face.name)
def face(request: pytest.FixtureRequest) -> Face:
    found: Face = request.param
    return found


def test_every_exception_and_type_that_the_page_names_is_exported() -> None:
    named = set(re.findall(r"`([A-Z]\w+(?:Error|Metadata|Listener|Partition|Record))`", PAGE.read_text()))
    assert len(named) > 5
    imported = re.findall(r"^from ixion\.clients(\.\S+)? import (.+)$", PAGE.read_text(), re.MULTILINE)
    assert {module for module, _ in imported} == {"", ".aio"}, "an example imports from an inner module"
    named |= {name for module, names in imported if not module for name in names.split(", ")}
    assert named <= set(clients.__all__)
    for name in clients.__all__:
        assert name.isupper() or getattr(clients, name).__name__ == name
    assert (clients.EARLIEST, clients.LATEST) == (-2, -1)


@pytest.mark.parametrize(
    "call", ["describe_topics", "delete_topics", "create_topics", "delete_groups", "describe_groups"]
)
def test_a_text_in_place_of_a_list_is_refused(broker: Broker, topic: str, face: Face, call: str) -> None:
    """Else its letters would be deleted."""
    with face.admin(broker.bootstrap) as admin:
        with pytest.raises(TypeError, match=f"must be a list, not '{topic}'"):
            getattr(admin, call)(topic)
        assert topic in {each.name for each in admin.list_topics()}


def test_a_topic_may_be_created_by_its_name(broker: Broker, topic: str, face: Face) -> None:
    with face.admin(broker.bootstrap) as admin:
        created = admin.create_topics([f"{topic}-new", clients.NewTopic(f"{topic}-two", partitions=2)])
        assert len(created[f"{topic}-new"].partitions) == 1
        assert len(created[f"{topic}-two"].partitions) == 2


@pytest.mark.parametrize("client", ["Consumer", "ShareConsumer", "Producer", "Admin"])
def test_both_faces_have_the_same_calls_with_the_same_arguments(client: str) -> None:
    blocking, on_loop = getattr(clients, client), getattr(aio, client)
    alone = {"poll", "batches"} if client == "Producer" else set()  # a producer on a loop needs no poll

    def calls(of: Any) -> set[str]:
        return {name for name in dir(of) if not name.startswith("_")} - alone

    assert calls(blocking) == calls(on_loop)
    for name in calls(blocking):
        ours, theirs = inspect.getattr_static(blocking, name), inspect.getattr_static(on_loop, name)
        if inspect.isfunction(ours) and inspect.isfunction(theirs):
            assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("positional", "named", "error", "said"),
    [
        ((), {"bootstrap_servers": "b:9092"}, TypeError, "the addresses are the first argument"),
        (({"bootstrap.servers": "b:9092"},), {}, TypeError, "settings are keyword arguments"),
        ((), {}, ValueError, "the first argument is missing"),
        ((9092,), {}, TypeError, "bootstrap must be text"),
        (([9092],), {}, TypeError, "bootstrap must be a list of addresses"),
        (("b:port",), {}, ValueError, "is not an address"),
        (("b:9092",), {"request_timeout": 5}, TypeError, "did you mean 'request_timeout_ms'"),
        (("b:9092",), {"request.timeout.ms": 5}, TypeError, "write 'request_timeout_ms'"),
        (("b:9092",), {"request_timeout_ms": "5"}, ValueError, "request_timeout_ms is '5'; allowed are"),
        (("b:9092",), {"client_id": 5}, ValueError, "client_id is 5; allowed is text"),
    ],
)
def test_wrong_arguments_are_answered_alike(
    face: Face, kind: str, positional: tuple[Any, ...], named: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=re.escape(said)):
        getattr(face, kind)(*positional, **named)


def test_addresses_may_be_a_list(broker: Broker, topic: str, face: Face) -> None:
    with face.producer(["127.0.0.1:1", broker.bootstrap]) as producer:
        assert producer.send_and_wait(topic, b"value", partition=1, timeout_s=WAIT_S).offset == 0


def test_a_delivery_and_a_record_name_topic_and_partition_alike(broker: Broker, topic: str, face: Face) -> None:
    with face.producer(broker.bootstrap) as producer:
        sent = producer.send_and_wait(topic, b"value", headers={"a": b"1", "b": None}, partition=1)
    with face.consumer(broker.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 1)])
        (found,) = consumer.poll(WAIT_S)
    assert (found.topic, found.partition, found.offset) == (sent.topic, sent.partition, sent.offset) == (topic, 1, 0)
    assert found.headers == [("a", b"1"), ("b", None)]


def test_waiting_for_a_delivery_ends_with_its_error(topic: str, face: Face) -> None:
    with face.producer("127.0.0.1:1", max_block_ms=50) as producer, pytest.raises(TimedOutError):
        producer.send_and_wait(topic, b"value", timeout_s=WAIT_S)


def committed(broker: Broker, topic: str, face: Face, count: int) -> list[bytes]:
    with face.consumer(broker.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found: list[bytes] = []
        while len(found) < count:
            found += [record.value for record in consumer.poll(WAIT_S)]
        return found


def test_a_block_is_a_transaction(broker: Broker, topic: str, face: Face) -> None:
    with face.producer(broker.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"first", partition=0)
        with contextlib.suppress(LookupError), producer.transaction():
            producer.send(topic, b"aborted", partition=0)
            raise LookupError
        with producer.transaction():
            producer.send(topic, b"second", partition=0)
    assert committed(broker, topic, face, 2) == [b"first", b"second"]


def test_an_error_after_a_commit_inside_of_a_block_stays_the_error(broker: Broker, topic: str, face: Face) -> None:
    with face.producer(broker.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        with contextlib.suppress(ZeroDivisionError), producer.transaction():
            producer.send(topic, b"by hand", partition=0)
            producer.commit_transaction()
            raise ZeroDivisionError
    assert committed(broker, topic, face, 1) == [b"by hand"]


def test_a_fenced_producer_is_told_so_by_every_call(broker: Broker, topic: str, face: Face) -> None:
    old = face.producer(broker.bootstrap, transactional_id=topic)
    old.init_transactions()
    old.begin_transaction()
    old.wait(old.send(topic, b"old", partition=0), WAIT_S)
    with face.producer(broker.bootstrap, transactional_id=topic) as new:
        new.init_transactions()
    delivery = old.send(topic, b"late", partition=0)
    for call in (
        lambda: old.wait(delivery, WAIT_S),
        old.commit_transaction,
        old.abort_transaction,
        lambda: old.send(topic, b"later", partition=0),
        old.begin_transaction,
        old.flush,
    ):
        with pytest.raises(FencedError):
            call()
    old.__exit__(None, None, None)  # it has been told


def test_help_shows_what_a_client_does() -> None:
    for module in (clients, aio):
        for name in module.__all__:
            found = getattr(module, name)
            assert not isinstance(found, type) or found.__doc__, name
    for call in (clients.Consumer.poll, aio.Consumer.poll, aio.Producer.send):
        assert call.__doc__, call
    page = pydoc.plain(pydoc.render_doc(clients.Producer))
    assert "Wait until every record sent before is settled." in page


def test_a_compiled_class_gets_the_docstrings_of_its_source() -> None:
    """The compiler leaves them out, and a method of a compiled class cannot be given one."""
    source = (CHECKOUT / "src/ixion/clients/producer.py").read_text()
    text = docstring_of(source, "Producer")
    assert text.startswith("Sends records to topics; `ProducerOptions` has its settings.\n\nsend: Hand over a record")
    assert "\n\ncommit_transaction: Flush and commit. KafkaError if a record failed" in text
    assert "__" not in text
    assert docstring_of(source, "DeliveryFuture").startswith("The future delivery of one record.\n\nresult: ")
    assert docstring_of(source, "Nobody") == ""
