"""The clients of a case: writers, readers and copiers of two libraries, behind what the case needs of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple, Protocol

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message
from confluent_kafka import Consumer as RdConsumer
from confluent_kafka import Producer as RdProducer
from confluent_kafka import TopicPartition as RdPlace

from ixion.clients import Consumer, Producer, TopicPartition, aio
from ixion.clients.consumer.listener import RebalanceListener
from ixion.language.model import errors

FAULTS: Final = (KafkaException, errors.KafkaError, TimeoutError)  # of both: the client may go on, or a new one does
NEAR: Final = "r2"  # the rack of a consumer that reads from its nearest replica
QUICK: Final = {"socket.timeout.ms": 2_000, "reconnect.backoff.max.ms": 300, "log_level": 0}
OURS: Final[dict[str, Any]] = {"request_timeout_ms": 2_000, "retry_backoff_ms": 50}
DELIVERY_MS: Final = 30_000
TRANSACTION_MS: Final = 5_000
COMMITTED: Final = "read_committed"

Record = tuple[int, bytes, bytes, list[tuple[str, bytes]]]  # partition, key, value, headers
Found = tuple[int, int, str]  # partition, offset, value


class RefusedError(Exception):
    """A record was not acknowledged."""


class Writer(Protocol):
    def begin(self) -> None: ...
    def send(self, topic: str, records: Sequence[Record]) -> list[int]: ...
    def end(self, *, commit: bool) -> None: ...
    def close(self) -> None: ...


class RdWriter:
    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        own = {"transactional.id": transactional_id, "transaction.timeout.ms": TRANSACTION_MS}
        patience = {"message.timeout.ms": TRANSACTION_MS if transactional_id else DELIVERY_MS}
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1, **QUICK, **patience}
        self._producer = RdProducer({**settings, **(own if transactional_id else {})})
        if transactional_id:
            self._producer.init_transactions(20)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, records: Sequence[Record]) -> list[int]:
        offsets: dict[int, int] = {}
        failed: list[str] = []

        def delivered(number: int) -> Callable[[KafkaError | None, Message], None]:
            def settle(error: KafkaError | None, message: Message) -> None:
                offset = message.offset()
                if error is not None or offset is None:
                    failed.append(str(error))
                else:
                    offsets[number] = offset

            return settle

        for place, (partition, key, value, headers) in enumerate(records):
            self._producer.produce(
                topic, value, key, partition=partition, headers=dict(headers), on_delivery=delivered(place)
            )
        self._producer.flush(DELIVERY_MS / 1_000)
        if failed or len(offsets) < len(records):
            raise RefusedError(", ".join(failed) or "no answer")
        return [offsets[place] for place in range(len(records))]

    def end(self, *, commit: bool) -> None:
        if commit:
            self._producer.commit_transaction(20)
        else:
            self._producer.abort_transaction(20)

    def close(self) -> None:
        self._producer.flush(1)


def our_settings(transactional_id: str) -> dict[str, Any]:
    more: dict[str, Any] = {"delivery_timeout_ms": DELIVERY_MS}
    if transactional_id:
        more = {
            "transactional_id": transactional_id,
            "transaction_timeout_ms": TRANSACTION_MS,
            "delivery_timeout_ms": TRANSACTION_MS,
        }
    return {**OURS, "max_block_ms": 20_000, **more}


class OurWriter:
    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self._producer = Producer(bootstrap, **our_settings(transactional_id))
        if transactional_id:
            self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, records: Sequence[Record]) -> list[int]:
        sent = [
            self._producer.send(topic, value, key=key, partition=partition, headers=tuple(headers))
            for partition, key, value, headers in records
        ]
        self._producer.flush()
        return [each.result(0).offset for each in sent]

    def end(self, *, commit: bool) -> None:
        if commit:
            self._producer.commit_transaction()
        else:
            self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(1)


class AioWriter:
    """On a loop that runs while it is called."""

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self._runner = asyncio.Runner()
        self._producer: aio.Producer = self._run(self._begin(bootstrap, transactional_id))

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(work)

    async def _begin(self, bootstrap: str, transactional_id: str) -> aio.Producer:
        producer = aio.Producer(bootstrap, **our_settings(transactional_id))
        await producer.init_transactions()
        return producer

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, records: Sequence[Record]) -> list[int]:
        async def work() -> list[int]:
            sent = [
                await self._producer.send(topic, value, key=key, partition=partition, headers=tuple(headers))
                for partition, key, value, headers in records
            ]
            await self._producer.flush()
            return [(await each).offset for each in sent]

        found: list[int] = self._run(work())
        return found

    def end(self, *, commit: bool) -> None:
        ended = self._producer.commit_transaction() if commit else self._producer.abort_transaction()
        self._run(ended)

    def close(self) -> None:
        try:
            self._run(self._producer.close(1))
        finally:
            self._runner.close()


WRITERS: Final[dict[str, Callable[[str, str], Writer]]] = {
    "rd": RdWriter,
    "rd-txn": RdWriter,
    "ours": OurWriter,
    "ours-txn": OurWriter,
    "aio-txn": AioWriter,
}


class What(NamedTuple):
    """What a reader reads, and how it says that it begins anew."""

    topic: str
    partitions: int
    group: str  # it commits there; else it reads from the start
    assigned: Callable[[], None]


class Reader(Protocol):
    def poll(self) -> list[Found]: ...
    def commit(self) -> None: ...
    def close(self) -> None: ...


class RdReader:
    def __init__(self, bootstrap: str, what: What) -> None:
        self._group = what.group
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": what.group or "nobody",
            "isolation.level": COMMITTED,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6_000,
            **QUICK,
        }
        self._consumer = RdConsumer(settings)
        if what.group:
            self._consumer.subscribe([what.topic], on_assign=lambda *_: what.assigned())
        else:
            self._consumer.assign([RdPlace(what.topic, each, OFFSET_BEGINNING) for each in range(what.partitions)])
            what.assigned()

    def poll(self) -> list[Found]:
        found = [each for each in self._consumer.consume(200, 0.3) if each.error() is None]
        return [(each.partition() or 0, each.offset() or 0, (each.value() or b"").decode()) for each in found]

    def commit(self) -> None:
        if self._group:
            self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


class Assigned(RebalanceListener):
    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> object:  # noqa: ARG002 - any
        self._tell()
        return None


class OurReader:
    def __init__(self, bootstrap: str, what: What, **more: Any) -> None:
        self._group = what.group
        settings: dict[str, Any] = {
            "isolation_level": COMMITTED,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            **OURS,
            **more,
        }
        if what.group:
            self._consumer = Consumer(bootstrap, group=what.group, **settings)
            self._consumer.subscribe([what.topic], Assigned(what.assigned))
        else:
            self._consumer = Consumer(bootstrap, **settings)
            self._consumer.assign([TopicPartition(what.topic, each) for each in range(what.partitions)])
            what.assigned()

    def poll(self) -> list[Found]:
        return [(each.partition, each.offset, bytes(each.value or b"").decode()) for each in self._consumer.poll(0.3)]

    def commit(self) -> None:
        if self._group:
            self._consumer.commit()

    def close(self) -> None:
        self._consumer.close()


def make_reader(kind: str, bootstrap: str, what: What) -> Reader:
    if kind.startswith("rd"):
        return RdReader(bootstrap, what)
    more: dict[str, Any] = {}
    if kind == "ours-nearest":
        more = {"client_rack": NEAR}
    elif kind == "ours-new-group":
        more = {"group_protocol": "consumer"}
    return OurReader(bootstrap, what, **more)
