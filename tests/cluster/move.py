"""`make judges-move`: a whole cluster moves from Apache Kafka to ixion and back, as docs/cluster.md says, under load.

Three Apache Kafka 3.9.1 brokers on a real ZooKeeper; a producer with acks=all, a group that commits its offsets, and
transactions run all the time. The commands are those of the document: they are read from it. It takes a few minutes.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devtools.kafka import answers
from devtools.zookeeper import RealZooKeeper
from devtools.zookeeper_kafka import ZooKeeperKafka
from tests.broker.served import environment
from tests.cluster.mixed import PATIENCE_S, Load, check_kept, wait_until
from tests.names import drawn

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "cluster.md"
TOPIC: Final = "moved"
PARTITIONS: Final = 6
SETTINGS: Final = {
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    "auto.create.topics.enable": "false",
    "log.cleaner.dedupe.buffer.size": "16777216",
}


def documented() -> tuple[list[str], list[str]]:
    """The commands of the section, there and back."""
    text = DOCUMENT.read_text()
    section = text[text.index("## Moving from Apache Kafka to ixion, and back") :]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)[:2]
    there, back = ([line.partition("#")[0].strip() for line in block.splitlines()] for block in blocks)
    return there, back


class Seat:
    """One broker of the cluster: its id, address and data directory, with Apache Kafka or ixion on it."""

    def __init__(self, number: int, connect: str, home: Path) -> None:
        self.kafka = ZooKeeperKafka(number, connect, home / str(number), properties=SETTINGS)
        self.number = number
        self._process: subprocess.Popen[bytes] | None = None

    def do(self, command: str) -> None:
        """One line of the document."""
        words = shlex.split(command)
        if words[0] == "kafka-server-start.sh":
            self.kafka.start()
        elif words[0] == "kafka-server-stop.sh":
            self.kafka.stop()
        elif words[:2] == ["kill", "-TERM"]:
            self.stop()
        elif words[:2] == ["ixion", "serve"]:
            self.serve([str(self.kafka._file) if word == "server.properties" else word for word in words[2:]])
        elif words == ["ixion", "cluster", "describe"]:
            wait_until(lambda: self.described()["under_replicated"] == 0, self.described)
        else:
            raise AssertionError(f"the document says what nobody here understands: {command}")

    def serve(self, words: list[str]) -> None:
        with (self.kafka.data_dir / "ixion.out").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ixion", "serve", "--metrics-port", "off", *words],
                env=environment(),
                stdout=output,
                stderr=output,
            )
        process = self._process
        wait_until(lambda: process.poll() is not None or answers("127.0.0.1", self.kafka.port))
        assert process.poll() is None, (self.kafka.data_dir / "ixion.out").read_text()

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait(PATIENCE_S)

    def described(self) -> dict[str, object]:
        command = [sys.executable, "-m", "ixion", "cluster", "describe", "--json", "-b", self.kafka.bootstrap]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
        found: dict[str, object] = json.loads(done.stdout) if done.returncode == 0 else {"under_replicated": -1}
        return found


class Transactions:
    """Commits a transaction of two records and the offset of a group, again and again."""

    def __init__(self, bootstrap: str, topic: str = "transacted", transactional_id: str = drawn("mover")) -> None:
        self.committed = 0
        self._bootstrap = bootstrap
        self._topic = topic
        self._id = transactional_id
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> int:
        self._end.set()
        self._thread.join()
        return self.committed

    def _run(self) -> None:
        producer = self._begin()
        while not self._end.is_set():
            try:
                producer.begin_transaction()
                for partition in (0, 1):
                    producer.produce(self._topic, b"%d" % self.committed, partition=partition)
                producer.commit_transaction(PATIENCE_S)
                self.committed += 1
            except KafkaException as error:
                fault = error.args[0]
                if fault.txn_requires_abort():
                    producer.abort_transaction(PATIENCE_S)
                elif not fault.retriable():
                    producer = self._begin()

    def _begin(self) -> Producer:
        settings = {"bootstrap.servers": self._bootstrap, "transactional.id": self._id, "log_level": 0}
        producer = Producer({**settings, "transaction.timeout.ms": 60_000})
        producer.init_transactions(PATIENCE_S)
        return producer


def consume(
    bootstrap: str, end: threading.Event, seen: dict[int, int], topic: str = TOPIC, group: str = drawn("movers")
) -> None:
    """A member of a group that reads and commits; `seen` has the next offset of each partition."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", "log_level": 0}
    consumer = Consumer({**settings, "enable.auto.commit": False, "session.timeout.ms": 30_000})
    consumer.subscribe([topic])
    while not end.is_set():
        message = consumer.poll(0.2)
        if message is None or message.error() is not None:
            continue
        partition, offset = message.partition() or 0, message.offset() or 0
        assert offset <= seen.get(partition, 0), f"partition {partition}: {offset} after {seen.get(partition)}"
        seen[partition] = max(seen.get(partition, 0), offset + 1)
        if offset % 500 == 0:
            try:
                consumer.commit(message=message, asynchronous=False)
            except KafkaException:
                pass  # a rebalance is under way; the next one counts
    consumer.close()


def main() -> None:
    there, back = documented()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ixion-move-")))
        zookeeper = stack.enter_context(RealZooKeeper(home / "zookeeper"))
        seats = [Seat(number, f"{zookeeper.connect}/moved", home) for number in (1, 2, 3)]
        for seat in seats:
            stack.callback(seat.kafka.kill)
            stack.callback(seat.stop)
            seat.kafka.begin()
        for seat in seats:
            seat.kafka.wait()
        bootstrap = ",".join(seat.kafka.bootstrap for seat in seats)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        wait_until(lambda: len(admin.list_topics(timeout=30).brokers) == 3)
        topics = [NewTopic(TOPIC, PARTITIONS, 3), NewTopic("transacted", 2, 3)]
        for made in admin.create_topics(topics).values():
            made.result(PATIENCE_S)
        over, seen = threading.Event(), dict[int, int]()
        reader = threading.Thread(target=consume, args=(bootstrap, over, seen))
        reader.start()
        transactions = Transactions(bootstrap)
        try:
            with Load(bootstrap, TOPIC, PARTITIONS) as load:
                for name, commands in (("ixion", there), ("Apache Kafka", back)):
                    for seat in sorted(seats, key=lambda it: it.number == controller(seats)):
                        load.await_more(200)
                        for command in commands:
                            seat.do(command)
                        print(f"broker {seat.number} is {name}: {load.count} acknowledged", flush=True)
                    load.await_more(200)
            assert not load.failed, load.failed[:3]
            wait_until(lambda: sum(seen.values()) >= load.count, lambda: f"{sum(seen.values())} of {load.count} read")
        finally:
            over.set()
            reader.join()
            committed = transactions.end()
        found = read_all(bootstrap, TOPIC, PARTITIONS)
        check_kept(load, found)
        pairs = read_all(bootstrap, "transacted", 2)
        assert [value for _, value in pairs[0]] == [value for _, value in pairs[1]]
        assert len({value for _, value in pairs[0]}) >= committed > 0
        print(
            f"{load.count} acknowledged and all there, {committed} transactions, {sum(seen.values())} read by the group"
        )


def controller(seats: list[Seat]) -> object:
    return seats[0].described().get("controller")


def read_all(bootstrap: str, topic: str, partitions: int) -> dict[int, list[tuple[int, bytes]]]:
    settings = {"bootstrap.servers": bootstrap, "group.id": f"all-{os.getpid()}", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.partition.eof": True, "log_level": 0})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found: dict[int, list[tuple[int, bytes]]] = {number: [] for number in range(partitions)}
    left = set(found)
    while left:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, f"{topic}: {left} cannot be read to their ends"
        if message.error() is not None:
            left.discard(message.partition())
        else:
            found[message.partition() or 0].append((message.offset() or 0, message.value() or b""))
    consumer.close()
    return found


if __name__ == "__main__":
    main()
