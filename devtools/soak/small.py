"""The small form of the cluster soak: three brokers and a tree of ours as processes, for seconds.

    python -m devtools.soak.small --seed 1

It needs neither root nor a JVM. One client writes with an idempotent producer and acks=all, another one transactions.
Meanwhile, in an order that the seed decides:

spoiled   frames are cut, answers dropped and delayed, those between brokers as well
cut       the leader is cut off from the tree until another one leads
paused    the leader sleeps until another one leads
behind    the followers sleep for a moment, and the leader is killed (kill -9) before they have caught up

After each, records are acknowledged again before the next one comes. At the end all replicas must be in sync, the
history of all clients must hold, and the replicas must be the same bytes. A step ends as soon as it is proven; the
bounds are wide, so that a loaded machine makes a run longer, not wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.cimpl import NewTopic

from devtools.history.checker import Anomaly, check
from devtools.history.operation import read_history
from devtools.soak import our_reader, our_writer
from devtools.soak.broken import CLUSTER_FAULTS
from devtools.soak.diary import Diary
from devtools.soak.equal import unequal
from devtools.soak.proxy import Faults, Proxies
from devtools.soak.small_machine import BROKERS, QUICK, WAIT_S, Machine, machine, until, within
from ixion.clients import Producer as OurProducer
from ixion.language.model.errors import KafkaError as OurError

TOPIC: Final = "written"
PARTITIONS: Final = 2
TOGETHER: Final = 5  # records in flight
RECORDS: Final = 50  # acknowledged before a fault, and after it
SPOILED: Final = Faults(cut=0.02, drop=0.03, delay=0.01)
BEHIND_S: Final = 2.5  # followers sleep, less than their session
PATIENCE_S: Final = 30.0  # for another leader; an expired session and an election take 5


@dataclass
class Report:
    acknowledged: int = 0
    struck: dict[str, bool] = field(default_factory=dict)  # by fault, in the order in which they came
    spoiled: Counter[str] = field(default_factory=Counter)  # frames
    anomalies: list[Anomaly] = field(default_factory=list)


class Writer:
    """Sends five records at a time, and the next five when these are acknowledged."""

    def __init__(self, bootstrap: str, histories: Path) -> None:
        self.acknowledged = 0
        self.failed: list[str] = []
        self._stop = threading.Event()
        self._diary = Diary(histories, "idempotent")
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all", "linger.ms": 1}
        self._producer = Producer({**settings, "message.timeout.ms": int(WAIT_S * 1_000), **QUICK})
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        numbers = count()
        while not self._stop.is_set() and not self.failed:
            sends = [(n % PARTITIONS, f"{self._diary.process}.{n}") for n in islice(numbers, TOGETHER)]
            placed: dict[str, tuple[int]] = {}

            def delivered(error: KafkaError | None, message: Message, placed: dict[str, tuple[int]] = placed) -> None:
                offset = message.offset()
                if error is None and offset is not None:
                    placed[(message.value() or b"").decode()] = (offset,)
                else:
                    self.failed.append(str(error))

            self._write("invoke", sends, {})
            try:
                for partition, value in sends:
                    self._producer.produce(TOPIC, value.encode(), partition=partition, on_delivery=delivered)
                self._producer.flush()
            # A fatal one: the leader lacks what was acknowledged. Of some, confluent-kafka raises a SystemError.
            except (KafkaException, SystemError) as error:
                self.failed.append(str(error))
            self._write("info" if self.failed else "ok", sends, placed)
            self.acknowledged += len(placed)

    def _write(self, outcome: str, sends: list[tuple[int, str]], placed: dict[str, tuple[int]]) -> None:
        parts = [["send", f"{TOPIC}-{number}", value, *placed.get(value, ())] for number, value in sends]
        self._diary.write("send", outcome, parts)

    def await_more(self, number: int = RECORDS) -> None:
        wanted = self.acknowledged + number
        until(lambda: self.acknowledged >= wanted or bool(self.failed), f"{number} more acknowledged records")

    def close(self) -> None:
        self._stop.set()
        self._thread.join()


class Transactions:
    """Our own transactional producer, until it is closed."""

    def __init__(self, bootstrap: str, histories: Path) -> None:
        self._bootstrap = bootstrap
        self._diary = Diary(histories, "transactional")
        self._diary.process += 1_000  # the other writer of this process has the number before
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        numbers = count()
        while not self._stop.is_set():
            try:
                our_writer.write(self._bootstrap, "txn", self._diary, TOPIC, PARTITIONS, numbers, 10)
            except (OurError, TimeoutError):
                continue

    def close(self) -> None:
        """The next producer of the same id ends what is open; readers at read_committed wait for that."""
        self._stop.set()
        self._thread.join()

        def ended() -> bool:
            try:
                with OurProducer(self._bootstrap, transactional_id="txn", **our_writer.SETTINGS) as producer:
                    producer.init_transactions()
            except (OurError, TimeoutError):
                return False
            return True

        until(ended, "the last transaction to be ended")


class Small:
    def __init__(self, brokers: Machine, proxies: Proxies, writer: Writer, chance: random.Random) -> None:
        self._brokers = brokers
        self._proxies = proxies
        self._writer = writer
        self._random = chance
        self.shown = False  # a leader has answered alone, and another one leads now

    def faults(self) -> dict[str, Callable[[], bool]]:
        """Each says whether it took the leader away, or spoiled what it was to spoil."""
        return {"spoiled": self._spoil, "cut": self._cut, "paused": self._pause, "behind": self._kill_behind}

    def _leader(self) -> int:
        """Of a partition whose replicas are all in sync, so that any other may lead instead."""
        self._brokers.await_in_sync()
        return self._brokers.leader(TOPIC, 0)

    def _spoil(self) -> bool:
        before = self._proxies.done["drop"]
        with self._proxies.spoiled(SPOILED, self._random):
            until(lambda: self._proxies.done["drop"] > before or bool(self._writer.failed), "a dropped answer")
            self._writer.await_more()
        return True

    def _cut(self) -> bool:
        leader = self._leader()
        with self._proxies.shut(self._brokers.tree_ports[leader]):
            return self._served_without(leader)

    def _pause(self) -> bool:
        leader = self._leader()
        with self._brokers.paused(leader):
            return self._served_without(leader)

    def _kill_behind(self) -> bool:
        """What is acknowledged while the followers sleep is on the leader alone: nothing, if the brokers are sound."""
        leader = self._leader()
        with self._brokers.paused(*(broker for broker in BROKERS if broker != leader)):
            wanted = self._writer.acknowledged + 2 * TOGETHER
            alone = within(BEHIND_S, lambda: self._writer.acknowledged >= wanted)
            self._brokers.kill(leader)
        struck = self._served_without(leader)
        self.shown = self.shown or (alone and struck)
        self._brokers.start_brokers(leader)
        return struck

    def _served_without(self, leader: int) -> bool:
        """Whether another one leads and records are acknowledged. On a machine so slow that the others have left the
        ISR meanwhile, nobody can lead: then it goes on."""
        wanted = self._writer.acknowledged + RECORDS
        return within(PATIENCE_S, lambda: self._brokers.leads(TOPIC, 0) not in (-1, leader)) and within(
            PATIENCE_S, lambda: self._writer.acknowledged >= wanted or bool(self._writer.failed)
        )


def run(directory: Path, seed: int, names: tuple[str, ...] = (), broken: str | None = None) -> Report:
    """With these faults; all of them without. Brokers that are broken in this way are to be found. A fault that is
    named several times comes again if the machine was too slow for the first one to show it."""
    chance = random.Random(seed)
    report = Report()
    histories = directory / "histories"
    histories.mkdir(parents=True)
    with Proxies() as proxies, machine(directory, proxies, broken) as brokers:
        brokers.admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(WAIT_S)
        transactions = Transactions(brokers.bootstrap, histories)
        writer = Writer(brokers.bootstrap, histories)
        small = Small(brokers, proxies, writer, chance)
        chosen = list(names or small.faults())
        chance.shuffle(chosen)
        try:
            writer.await_more()
            for name in chosen:
                if not writer.failed and not small.shown:
                    report.struck[name] = small.faults()[name]()
                    writer.await_more()
        finally:
            writer.close()
            transactions.close()
        brokers.await_in_sync()
        our_reader.main(brokers.bootstrap, str(histories), "last", TOPIC, str(PARTITIONS), "--to-the-end")
        brokers.stop_brokers()
        report.spoiled.update(proxies.done)
        report.acknowledged = writer.acknowledged
        report.anomalies += [Anomaly("sequence" if "sequence" in text else "refused", text) for text in writer.failed]
    lines = [line for file in sorted(histories.iterdir()) for line in file.read_text().splitlines()]
    report.anomalies += check(list(read_history(lines)))
    report.anomalies += unequal([directory / f"broker-{broker}" for broker in BROKERS])
    return report


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m devtools.soak.small", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--faults", default="", help="spoiled, cut, paused, behind, by comma (default: all)")
    parser.add_argument("--broken", choices=CLUSTER_FAULTS, help="with brokers that have this fault")
    parser.add_argument("--keep", metavar="DIR", help="leave data, logs and histories here")
    options = parser.parse_args()
    begun = time.monotonic()
    names = tuple(name for name in options.faults.split(",") if name)
    with tempfile.TemporaryDirectory(prefix="ixion-soak-") as directory:
        report = run(Path(options.keep or directory), options.seed, names, options.broken)
    took_s = time.monotonic() - begun
    print(f"seed {options.seed}: {report.acknowledged} records acknowledged in {took_s:.0f} s")
    print(f"struck: {report.struck}, frames: {dict(report.spoiled)}")
    sys.exit("\n".join(f"{each.kind}: {each.detail}" for each in report.anomalies[:50]))


if __name__ == "__main__":
    main()
