"""Our clients in both faces, confluent-kafka and aiokafka behind one small set of calls, for `test_beside_others`.

Each client writes down what its user sees, in words that name no client: records, callbacks and errors in the order in
which they come. An error is named by Kafka's code, wherever the client has one.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import confluent_kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka import TopicPartition as AioPlace
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError as AiokafkaError

from ixion.clients import KafkaError, RebalanceListener, TopicPartition
from ixion.language.model.errors import ErrorCode
from tests.clients.faces import AIO, BLOCKING, Face

WAIT_S: Final = 45.0  # far beyond what a call needs, on a busy machine
POLL_S: Final = 0.05
# Errors by Kafka's code, else by the name that the client has for them.
WORDS: Final = {
    ErrorCode.PRODUCER_FENCED.name: "fenced",
    ErrorCode.INVALID_PRODUCER_EPOCH.name: "fenced",
    "_FENCED": "fenced",
    "ProducerFenced": "fenced",
    ErrorCode.UNKNOWN_MEMBER_ID.name: "removed",
    ErrorCode.ILLEGAL_GENERATION.name: "removed",
    "CommitFailedError": "removed",
    "NoOffsetError": "no offset",
    "NoOffsetForPartitionError": "no offset",
    "_AUTO_OFFSET_RESET": "no offset",
    "ConsumerClosedError": "closed",
    "ConsumerStoppedError": "closed",
    "RuntimeError": "closed",
}


def word(error: BaseException) -> str:
    """What kind of error it is."""
    name = type(error).__name__
    if name in WORDS:
        return WORDS[name]
    if isinstance(error, confluent_kafka.KafkaException):
        fault = error.args[0]
        name = fault.name() if fault.code() < 0 else ErrorCode(fault.code()).name
    elif isinstance(error, KafkaError):
        name = error.code.name
    elif isinstance(error, AiokafkaError):
        name = ErrorCode(getattr(error, "errno", -1)).name
    return WORDS.get(name, name)


class Client:
    """`seen` is what the user sees, in order."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def note(self, act: Callable[[], object], what: str) -> None:
        """Do it, and write down how it ended."""
        try:
            act()
        except Exception as error:
            self.seen.append(f"{what}: {word(error)}")
        else:
            self.seen.append(what)

    def delivered(self, value: bytes, offset: int, error: BaseException | None) -> None:
        self.seen.append(
            f"{value[:9].decode()} at {offset}" if error is None else f"{value[:9].decode()}: {word(error)}"
        )

    def end(self) -> None:
        """Give back what the closed client needed."""

    def turned(self, kind: str, partitions: Sequence[Any]) -> None:
        self.seen.append(f"{kind} {sorted(each.partition for each in partitions)}")


class OursProducer(Client):
    def __init__(self, face: Face, bootstrap: str, wishes: dict[str, Any]) -> None:
        super().__init__()
        names = {"limit": "max_request_size", "creates": "allow_auto_create_topics", "id": "transactional_id"}
        self._client = face.producer(bootstrap, **{names[name]: value for name, value in wishes.items()})

    def send(self, topic: str, value: bytes) -> None:
        def heard(delivery: Any) -> None:
            self.delivered(value, delivery.offset, delivery.error)

        self._client.send(topic, value, partition=0, on_delivery=heard)

    def __getattr__(self, name: str) -> Any:
        return getattr(
            self._client,
            {
                "init": "init_transactions",
                "begin": "begin_transaction",
                "commit": "commit_transaction",
                "abort": "abort_transaction",
            }.get(name, name),
        )

    def close(self) -> None:
        with contextlib.suppress(KafkaError):
            self._client.__exit__(None, None, None)


class ConfluentProducer(Client):
    def __init__(self, bootstrap: str, wishes: dict[str, Any]) -> None:
        super().__init__()
        names = {"limit": "message.max.bytes", "creates": "allow.auto.create.topics", "id": "transactional.id"}
        settings = {names[name]: value for name, value in wishes.items()}
        self._client = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "topic.metadata.propagation.max.ms": 100, **settings}
        )

    def send(self, topic: str, value: bytes) -> None:
        def heard(error: Any, message: Any) -> None:
            fault = None if error is None else confluent_kafka.KafkaException(error)
            self.delivered(value, message.offset(), fault)

        self._client.produce(topic, value, partition=0, on_delivery=heard)

    def flush(self) -> None:
        self._client.flush(WAIT_S)

    def init(self) -> None:
        self._client.init_transactions(WAIT_S)

    def begin(self) -> None:
        self._client.begin_transaction()

    def commit(self) -> None:
        self._client.commit_transaction(WAIT_S)

    def abort(self) -> None:
        self._client.abort_transaction(WAIT_S)

    def close(self) -> None:
        with contextlib.suppress(confluent_kafka.KafkaException):
            self._client.flush(WAIT_S)


class Loop:
    """A loop of its own thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()

    def run(self, call: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(call, self.loop).result(WAIT_S)

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))
        # aiokafka may leave a connection open: it would warn in whichever test runs when it is collected.
        with warnings.catch_warnings(action="ignore"):
            self.loop.close()
            gc.collect()


class AiokafkaProducer(Client):
    def __init__(self, bootstrap: str, wishes: dict[str, Any]) -> None:
        super().__init__()
        names = {"limit": "max_request_size", "id": "transactional_id"}
        settings = {names[name]: value for name, value in wishes.items() if name in names}
        self._loop = Loop()
        self._sent: list[Any] = []

        async def started() -> Any:
            client = AIOKafkaProducer(
                bootstrap_servers=bootstrap, enable_idempotence=True, request_timeout_ms=5000, **settings
            )
            if "id" not in wishes:
                await client.start()
            return client

        self._client = self._loop.run(started())

    def send(self, topic: str, value: bytes) -> None:
        async def sent() -> None:
            future = await self._client.send(topic, value, partition=0)
            self._sent.append(future)
            future.add_done_callback(heard)

        def heard(future: Any) -> None:
            error = future.exception()
            self.delivered(value, -1 if error else future.result().offset, error)

        self._loop.run(sent())

    def flush(self) -> None:
        async def settled() -> None:
            await asyncio.gather(*self._sent, return_exceptions=True)
            self._sent.clear()

        self._loop.run(settled())

    def init(self) -> None:
        self._loop.run(self._client.start())

    def begin(self) -> None:
        self._loop.run(self._client.begin_transaction())

    def commit(self) -> None:
        self._loop.run(self._client.commit_transaction())

    def abort(self) -> None:
        self._loop.run(self._client.abort_transaction())

    def close(self) -> None:
        with contextlib.suppress(AiokafkaError):
            self._loop.run(self._client.stop())
        self._loop.end()


class OursConsumer(Client):
    def __init__(self, face: Face, bootstrap: str, group: str, topic: str, wishes: dict[str, Any]) -> None:
        super().__init__()
        consumer = self

        class Listener(RebalanceListener):
            def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
                consumer.turned("assigned", partitions)

            def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
                consumer.turned("revoked", partitions)

            def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
                consumer.turned("lost", partitions)

        settings = {name.replace(".", "_"): value for name, value in wishes.items()}
        self._topic = topic
        self._client = face.consumer(
            bootstrap,
            group=group,
            topics=[topic],
            listener=Listener(),
            partition_assignment_strategy=["range"],
            **settings,
        )

    def poll(self) -> list[bytes]:
        return [record.value for record in self._client.poll(POLL_S)]

    def held(self) -> int:
        return len(self._client.assignment())

    def commit(self) -> None:
        self._client.commit()

    def committed(self) -> int | None:
        found: int | None = self._client.committed([self.place])[self.place]
        return found

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self._topic, 0)

    def seek(self, offset: int) -> None:
        self._client.seek(self.place, offset)

    def pause(self) -> None:
        self._client.pause(self.place)

    def resume(self) -> None:
        self._client.resume(self.place)

    def position(self) -> int:
        found: int = self._client.position(self.place)
        return found

    def close(self) -> None:
        self._client.close()

    def end(self) -> None:
        self._client.__exit__(None, None, None)


class ConfluentConsumer(Client):
    def __init__(self, bootstrap: str, group: str, topic: str, wishes: dict[str, Any]) -> None:
        super().__init__()
        if wishes.get("auto.offset.reset") == "none":
            wishes = wishes | {"auto.offset.reset": "error"}
        self._topic = topic
        self._client = confluent_kafka.Consumer(
            {"bootstrap.servers": bootstrap, "group.id": group, "partition.assignment.strategy": "range", **wishes}
        )
        self._client.subscribe(
            [topic],
            on_assign=lambda _, partitions: self.turned("assigned", partitions),
            on_revoke=lambda _, partitions: self.turned("revoked", partitions),
            on_lost=lambda _, partitions: self.turned("lost", partitions),
        )

    def poll(self) -> list[bytes]:
        found = []
        for message in self._client.consume(500, POLL_S):
            if message.error() is not None:
                raise confluent_kafka.KafkaException(message.error())
            found.append(message.value() or b"")
        return found

    def held(self) -> int:
        return len(self._client.assignment())

    def commit(self) -> None:
        self._client.commit(asynchronous=False)

    def committed(self) -> int | None:
        offset: int = self._client.committed([self.place], WAIT_S)[0].offset
        return offset if offset >= 0 else None

    @property
    def place(self) -> Any:
        return confluent_kafka.TopicPartition(self._topic, 0)

    def seek(self, offset: int) -> None:
        self._client.seek(confluent_kafka.TopicPartition(self._topic, 0, offset))

    def pause(self) -> None:
        self._client.pause([self.place])

    def resume(self) -> None:
        self._client.resume([self.place])

    def position(self) -> int:
        found: int = self._client.position([self.place])[0].offset
        return found

    def close(self) -> None:
        self._client.close()


class AiokafkaConsumer(Client):
    def __init__(self, bootstrap: str, group: str, topic: str, wishes: dict[str, Any]) -> None:
        super().__init__()
        consumer = self

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_assigned(self, assigned: Any) -> None:
                consumer.turned("assigned", list(assigned))

            def on_partitions_revoked(self, revoked: Any) -> None:
                if revoked:  # it is called before the first assignment, too
                    consumer.turned("revoked", list(revoked))

        settings = {name.replace(".", "_"): value for name, value in wishes.items()}
        self._loop = Loop()
        self._place = AioPlace(topic, 0)

        async def started() -> Any:
            client = AIOKafkaConsumer(
                bootstrap_servers=bootstrap,
                group_id=group,
                partition_assignment_strategy=[RangePartitionAssignor],
                **settings,
            )
            client.subscribe([topic], listener=Listener())
            await client.start()
            return client

        self._client = self._loop.run(started())

    def poll(self) -> list[bytes]:
        found = self._loop.run(self._client.getmany(timeout_ms=int(POLL_S * 1000)))
        return [record.value for records in found.values() for record in records]

    def held(self) -> int:
        return len(self._client.assignment())

    def commit(self) -> None:
        self._loop.run(self._client.commit())

    def committed(self) -> int | None:
        found: int | None = self._loop.run(self._client.committed(self._place))
        return found

    def seek(self, offset: int) -> None:
        self._in_loop(lambda: self._client.seek(self._place, offset))

    def pause(self) -> None:
        self._in_loop(lambda: self._client.pause(self._place))

    def resume(self) -> None:
        self._in_loop(lambda: self._client.resume(self._place))

    def _in_loop(self, act: Callable[[], object]) -> None:
        async def acted() -> None:
            act()

        self._loop.run(acted())

    def position(self) -> int:
        found: int = self._loop.run(self._client.position(self._place))
        return found

    def close(self) -> None:
        self._loop.run(self._client.stop())

    def end(self) -> None:
        self._loop.end()


class Library:
    """A client library."""

    def __init__(self, name: str, producers: Callable[..., Any], consumers: Callable[..., Any]) -> None:
        self.name = name
        self._producers = producers
        self._consumers = consumers

    @contextlib.contextmanager
    def producer(self, bootstrap: str, **wishes: Any) -> Iterator[Any]:
        client = self._producers(bootstrap, wishes)
        try:
            yield client
        finally:
            client.close()

    @contextlib.contextmanager
    def consumer(self, bootstrap: str, group: str, topic: str, **wishes: Any) -> Iterator[Any]:
        client = self._consumers(
            bootstrap, group, topic, {name.replace("_", "."): each for name, each in wishes.items()}
        )
        try:
            yield client
        finally:
            client.close()
            client.end()


def ours(face: Face) -> Library:
    return Library(
        f"ixion {face.name}", lambda *given: OursProducer(face, *given), lambda *given: OursConsumer(face, *given)
    )


LIBRARIES: Final = (
    ours(BLOCKING),
    ours(AIO),
    Library("confluent-kafka", ConfluentProducer, ConfluentConsumer),
    Library("aiokafka", AiokafkaProducer, AiokafkaConsumer),
)
