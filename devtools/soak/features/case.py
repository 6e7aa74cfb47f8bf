"""One case: a process that writes a topic, reads it and copies it, until a signal; then it reads everything once more.

    python -m devtools.soak.features.case BOOTSTRAP DIRECTORY '{"number": 3, "row": {…}}'

What it does and sees goes into its histories. A line that begins with FAULT names what the histories cannot show.
"""

from __future__ import annotations

import faulthandler
import json
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer as RdConsumer
from confluent_kafka import Producer as RdProducer

from devtools.soak import copier, our_copier
from devtools.soak.diary import PIECES, Diary
from devtools.soak.features import clients
from devtools.soak.features.factors import DELAY_MS, LONGEST_DELAY_MS, name_of
from devtools.soak.our_writer import SETTINGS
from ixion.clients import Admin, Consumer, Producer, TopicPartition
from ixion.clients.core.consumer.subscription import NotAssignedError
from ixion.language.model.errors import KafkaError

PARTITIONS: Final = 2
PAUSE_S: Final = 0.15  # between two writes
ABORTED: Final = 0.25
AHEAD: Final = 20  # operations that the threads of one case may name at a time: their numbers are apart by this
LAST_S: Final = 90.0  # to read everything at the end
TRIM_S: Final = 1.5


class Case:
    def __init__(self, bootstrap: str, directory: Path, number: int, row: dict[str, str]) -> None:
        self.row = row
        self.bootstrap = bootstrap
        self.directory = directory
        self.name = f"case-{number}"  # of files; the topic may have a longer one
        self.written_to = name_of(number, row)
        self.topic = f"{self.name}-target" if row["delay"] == "target" else self.written_to
        self.copy = f"{self.name}-copy"
        self.stop = threading.Event()
        self.done = threading.Event()
        self.acknowledged: set[str] = set()
        self.seen: dict[int, int] = {}  # the next offset of the reader, by partition
        self.copied: dict[int, int] = {}  # of the copier
        self._diaries = 0

    def diary(self, name: str) -> Diary:
        """Each thread acts under numbers of its own."""
        made = Diary(self.directory, f"{self.name}-{name}")
        made.process += self._diaries * (PIECES // AHEAD)
        self._diaries += 1
        return made

    def run(self) -> None:
        works: list[Callable[[], None]] = [self.read]
        works += [self.copy_on] if self.row["copier"] != "none" else []
        works += [self.trim] if self.row["fault"] == "trim" else []
        threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
        writing = threading.Thread(target=guarded, args=(self.write,), daemon=True)
        for thread in (*threads, writing):
            thread.start()
        self.stop.wait()
        writing.join(60)
        if writing.is_alive():
            fault(f"{self.name}: the writer hangs")
        time.sleep(LONGEST_DELAY_MS / 1_000)
        self.read_to_the_end(self.topic, "last")
        if self.row["copier"] != "none":
            until(lambda: self._behind() == {}, f"{self.name}: the copier is behind: {self._behind()}")
        self.done.set()
        for thread in threads:
            thread.join(30)
        if self.row["copier"] != "none":
            self.read_to_the_end(self.copy, "last-copy")

    # Writing.

    def write(self) -> None:
        diary, numbers = self.diary("writer"), count()
        committed: dict[int, list[bytes]] = {each: [] for each in range(PARTITIONS)}  # keys
        transactional = self.row["writer"].endswith("txn")
        while not self.stop.is_set():
            writer: clients.Writer | None = None
            try:
                writer = clients.WRITERS[self.row["writer"]](self.bootstrap, self.name if transactional else "")
                while not self.stop.is_set():
                    self._write_some(writer, diary, numbers, committed, transactional)
                    time.sleep(random.expovariate(1 / PAUSE_S))
            except (*clients.FAULTS, clients.RefusedError):
                time.sleep(0.1)
            finally:
                close(writer)
        if transactional:  # the next producer of the same id ends what is open; readers wait for that
            until(self._is_ended, f"{self.name}: the last transaction does not end")

    def _is_ended(self) -> bool:
        try:
            with Producer(self.bootstrap, transactional_id=self.name, **SETTINGS) as producer:
                producer.init_transactions()
        except clients.FAULTS:
            return False
        return True

    def _write_some(
        self,
        writer: clients.Writer,
        diary: Diary,
        numbers: Any,
        committed: dict[int, list[bytes]],
        transactional: bool,
    ) -> None:
        delay = self.row["delay"]
        aborts = transactional and random.random() < ABORTED
        due_ms = now_ms() + {"none": 0, "fixed": DELAY_MS}.get(delay, random.randrange(LONGEST_DELAY_MS))
        headers = [("x-deliver-at", b"%d" % due_ms)] if delay in ("record", "target") else []
        if headers:
            diary.process += 1  # they are in the order of their times
        records: list[clients.Record] = []
        for _ in range(random.choice((1, 2, 4))):
            partition = random.randrange(PARTITIONS)
            value = f"{diary.process}.{next(numbers)}@{due_ms}"
            old = aborts and committed[partition]
            key = random.choice(committed[partition]) if old else value.encode()
            records.append((partition, key, value.encode(), headers))
        sends = [["send", f"{self.topic}-{partition}", value.decode()] for partition, _, value, _ in records]
        kind = "txn" if transactional else "send"
        diary.write(kind, "invoke", sends)
        deciding = not transactional
        try:
            if transactional:
                writer.begin()
            offsets = writer.send(self.written_to, records)
            if transactional:
                deciding = not aborts
                writer.end(commit=not aborts)
        except BaseException:
            diary.write(kind, "info" if deciding else "fail", sends)
            raise
        if aborts:
            diary.write(kind, "fail", sends)
            return
        placed = [[*send, offset] if not headers else send for send, offset in zip(sends, offsets, strict=True)]
        diary.write(kind, "ok", placed)
        self.acknowledged |= {value.decode() for _, _, value, _ in records}
        for partition, key, _, _ in records:
            committed[partition].append(key)

    # Reading.

    def read(self) -> None:
        diary = self.diary("reader")
        group = f"{self.written_to}-readers" if self.row["reader"].endswith("group") else ""
        what = clients.What(self.topic, PARTITIONS, group, lambda: diary.write("assign", "ok", []))
        while not self.done.is_set():
            reader: clients.Reader | None = None
            try:
                reader = clients.make_reader(self.row["reader"], self.bootstrap, what)
                while not self.done.is_set():
                    found = reader.poll()
                    self.note(diary, self.topic, found)
                    if found:
                        reader.commit()
                        self.seen |= {partition: offset + 1 for partition, offset, _ in found}
            except clients.FAULTS:
                diary.write("assign", "ok", [])  # what it commits now may be less than it has read
                time.sleep(0.1)
            finally:
                close(reader)

    def note(self, diary: Diary, topic: str, found: list[clients.Found]) -> None:
        by_key: dict[str, list[tuple[int, str]]] = {}
        for partition, offset, value in found:
            by_key.setdefault(f"{topic}-{partition}", []).append((offset, value))
            if not value.startswith("copy ") and now_ms() < int(value.partition("@")[2]):
                fault(f"{self.name}: {value} was read {int(value.partition('@')[2]) - now_ms()} ms early")
        if by_key:
            diary.write("poll", "ok", [["poll", key, records] for key, records in by_key.items()])

    def read_to_the_end(self, topic: str, name: str) -> None:
        """Until everything is there that this process got acknowledged, or time is up: the checker says what is not."""
        diary = self.diary(name)
        wanted = set() if topic != self.topic or self.row["fault"] == "trim" else set(self.acknowledged)
        places = [TopicPartition(topic, each) for each in range(PARTITIONS)]
        end_s = time.monotonic() + LAST_S
        while time.monotonic() < end_s:
            diary.write("assign", "ok", [])
            try:
                with Consumer(self.bootstrap, isolation_level=clients.COMMITTED, auto_offset_reset="earliest") as last:
                    last.assign(places)
                    while time.monotonic() < end_s:
                        ends = last.end_offsets(places)
                        found = [(each.partition, each.offset, text(each.value)) for each in last.poll(0.3, 1_000)]
                        self.note(diary, topic, found)
                        wanted -= {value for _, _, value in found}
                        if not wanted and all(last.position(each) >= ends[each] for each in places):
                            return
            except clients.FAULTS:
                time.sleep(0.2)
        if not wanted:
            fault(f"{self.name}: {name} could not read to the end")

    # Copying.

    def copy_on(self) -> None:
        diary = self.diary("copier")
        while not self.done.is_set():
            try:
                if self.row["copier"] == "rd":
                    self._copy_by_rd(diary)
                else:
                    self._copy_by_ours(diary)
            except (*clients.FAULTS, NotAssignedError):
                time.sleep(0.1)

    def _copy_by_rd(self, diary: Diary) -> None:
        settings = {"bootstrap.servers": self.bootstrap, **clients.QUICK}
        own = {"group.id": f"{self.name}-copiers", "isolation.level": clients.COMMITTED, "session.timeout.ms": 6_000}
        read = {"auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = RdConsumer({**settings, **own, **read})
        limits = {"transaction.timeout.ms": 5_000, "message.timeout.ms": 5_000}
        producer = RdProducer({**settings, "transactional.id": f"{self.name}-copier", **limits})
        try:
            producer.init_transactions(20)
            consumer.subscribe([self.topic])
            while not self.done.is_set():
                messages = [each for each in consumer.consume(20, 0.3) if each.error() is None]
                if messages and copier.copy_some(producer, consumer, diary, self.copy, messages):
                    self.copied |= {each.partition() or 0: (each.offset() or 0) + 1 for each in messages}
        finally:
            consumer.close()

    def _copy_by_ours(self, diary: Diary) -> None:
        producer = Producer(self.bootstrap, transactional_id=f"{self.name}-copier", **SETTINGS)
        try:
            producer.init_transactions()
            with Consumer(
                self.bootstrap,
                group=f"{self.name}-copiers",
                topics=[self.topic],
                isolation_level=clients.COMMITTED,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=6_000,
                request_timeout_ms=3_000,
            ) as consumer:
                while not self.done.is_set():
                    records = consumer.poll(0.3, 20)
                    if records and our_copier.copy_some(producer, consumer, diary, self.copy, records):
                        self.copied |= {each.partition: each.offset + 1 for each in records}
        finally:
            close(producer)

    def _behind(self) -> dict[int, tuple[int, int]]:
        """Partitions of which the copier has less than the reader."""
        return {
            each: (self.copied.get(each, 0), end) for each, end in self.seen.items() if self.copied.get(each, 0) < end
        }

    # Trimming.

    def trim(self) -> None:
        """Deletes what was read, and copied."""
        with Admin(self.bootstrap, default_api_timeout_ms=5_000) as admin:
            while not self.done.wait(TRIM_S):
                copied = self.copied if self.row["copier"] != "none" else self.seen
                below = {each: min(end, copied.get(each, 0)) for each, end in self.seen.items()}
                places = {TopicPartition(self.topic, each): end for each, end in below.items() if end}
                try:
                    if places and not self.stop.is_set():
                        admin.delete_records(places)
                except KafkaError:
                    continue


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def text(value: Any) -> str:
    return bytes(value or b"").decode()


def fault(what: str) -> None:
    print(f"FAULT: {what}", flush=True)


def close(client: Any) -> None:
    try:
        if client is not None:
            client.close()
    except clients.FAULTS:
        pass


def guarded(work: Callable[[], None]) -> None:
    try:
        work()
    except BaseException as error:
        fault(f"{work.__name__} ended: {error!r}")
        raise


def until(holds: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + LAST_S
    while not holds():
        if time.monotonic() > end_s:
            fault(what)
            faulthandler.dump_traceback()
            return
        time.sleep(0.2)


def main(bootstrap: str, directory: str, given: str) -> None:
    what = json.loads(given)
    case = Case(bootstrap, Path(directory), what["number"], what["row"])
    signal.signal(signal.SIGTERM, lambda *_: case.stop.set())
    case.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
