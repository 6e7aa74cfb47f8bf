"""`copier` with our own consumer and producer."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from devtools.soak.copier import ABORTED
from devtools.soak.diary import Diary
from devtools.soak.our_writer import SETTINGS, close
from ixion.clients import Consumer, Producer, TopicPartition
from ixion.clients.consumer.record import ConsumerRecord
from ixion.clients.core.consumer.subscription import NotAssignedError
from ixion.language.model.errors import KafkaError


def main(bootstrap: str, directory: str, name: str, source: str, target: str) -> None:
    diary = Diary(Path(directory), name)
    while True:
        try:
            copy(bootstrap, diary, name, source, target)
        except (KafkaError, NotAssignedError):
            continue


def copy(bootstrap: str, diary: Diary, name: str, source: str, target: str) -> None:
    """Copy until something fails; the next copier continues from the offsets that were committed."""
    producer = Producer(bootstrap, transactional_id=name, **SETTINGS)
    try:
        producer.init_transactions()
        with Consumer(
            bootstrap,
            group="copiers",
            topics=[source],
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=2_000,
            heartbeat_interval_ms=300,
            request_timeout_ms=3_000,
        ) as consumer:
            while True:
                records = consumer.poll(0.5, 20)
                if records:
                    copy_some(producer, consumer, diary, target, records)
    finally:
        close(producer)


def copy_some(producer: Producer, consumer: Consumer, diary: Diary, target: str, records: list[ConsumerRecord]) -> bool:
    """False if it was aborted and is to be done again."""
    sends = [(record.partition, f"copy {(record.value or b'').decode()}") for record in records]
    ends = {TopicPartition(record.topic, record.partition): record.offset + 1 for record in records}
    is_deciding = False
    try:
        producer.begin_transaction()
        futures = [producer.send(target, value.encode(), partition=number) for number, value in sends]
        producer.send_offsets(ends, consumer.group_metadata(), 10)
        if random.random() < ABORTED:
            producer.abort_transaction()
            for place, offset in consumer.committed(ends).items():
                consumer.seek(place, offset or 0)
            return False
        is_deciding = True
        producer.commit_transaction()
    except KafkaError:
        if is_deciding:
            diary.write("txn", "info", [["send", f"{target}-{number}", value] for number, value in sends])
        # No line for what certainly failed: the next copier copies its values again, under the same names.
        raise
    offsets = [future.result(0).offset for future in futures]
    parts = [["send", f"{target}-{number}", value, at] for (number, value), at in zip(sends, offsets, strict=True)]
    diary.write("txn", "ok", parts)
    return True


if __name__ == "__main__":
    main(*sys.argv[1:])
