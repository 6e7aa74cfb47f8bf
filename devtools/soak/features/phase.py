"""Runs cases that share a fault at the same time, and judges each by what its clients did and saw."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from devtools.history.checker import Anomaly, check
from devtools.history.copies import check_copies
from devtools.history.operation import read_history
from devtools.soak.features.case import PARTITIONS
from devtools.soak.features.covering import Row
from devtools.soak.features.factors import name_of, settings_of
from devtools.soak.features.faults import Disturber
from devtools.soak.proxy import Proxies
from devtools.soak.small_machine import WAIT_S, Machine, until, within
from ixion.clients import Admin
from ixion.clients.admin.topics import NewTopic

END_S: Final = 300.0  # for a case to read everything once more
SETTLE_S: Final = 3.0  # without faults before the end


@dataclass
class Verdict:
    anomalies: list[Anomaly] = field(default_factory=list)
    acknowledged: int = 0
    read: int = 0
    struck: int = 0


class Phase:
    def __init__(self, machine: Machine, proxies: Proxies, directory: Path, rows: dict[int, Row]) -> None:
        self._machine = machine
        self._proxies = proxies
        self._directory = directory
        self._rows = rows
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._chance = random.Random(min(rows))

    @property
    def topics(self) -> list[str]:
        return [each for number, row in self._rows.items() for each in topics_of(number, row)]

    def run(self, fault: str, seconds: float) -> Verdict:
        self._create()
        for number in self._rows:
            self._begin(number)
        disturber = Disturber(self._machine, self._proxies, self, self._chance)
        verdict = Verdict()
        try:
            until(self._are_at_work, f"every case of {sorted(self._rows)} to write and read")
            disturber.run(fault, seconds)
            if len(self._machine.brokers) > 1 and not within(WAIT_S, self._in_sync):
                verdict.anomalies.append(Anomaly("out-of-sync", f"{fault}: not all replicas are in sync again"))
            time.sleep(SETTLE_S)
            for process in self._processes.values():
                process.terminate()
            for number, process in self._processes.items():
                try:
                    code = process.wait(END_S)
                    if code:
                        verdict.anomalies.append(Anomaly("case-failed", f"case {number} ended with {code}"))
                except subprocess.TimeoutExpired:
                    verdict.anomalies.append(Anomaly("case-hangs", f"case {number} does not end"))
        finally:
            for process in self._processes.values():
                process.kill()
                process.wait()
        verdict.struck = disturber.done - disturber.refused
        for number, row in self._rows.items():
            self._judge(number, row, verdict)
        self._delete()
        return verdict

    def replace_one(self) -> None:
        """Kill the clients of a case, and start others in their place."""
        number = self._chance.choice(list(self._rows))
        self._processes[number].kill()
        self._processes[number].wait()
        self._begin(number)

    def _are_at_work(self) -> bool:
        """Starting this many processes takes a while."""
        histories = self._directory / "histories"
        return all(
            any('"ok"' in file.read_text() for file in histories.glob(f"case-{number}-{who}-*"))
            for number in self._rows
            for who in ("writer", "reader")
        ) and all(process.poll() is None for process in self._processes.values())

    def _in_sync(self) -> bool:
        count = len(self._machine.brokers)
        found = self._machine.admin.list_topics(timeout=10).topics
        parts = [part for topic in self.topics for part in found[topic].partitions.values()]
        return all(len(part.isrs) == count for part in parts)

    def _create(self) -> None:
        replicas = len(self._machine.brokers)
        with Admin(self._machine.bootstrap, default_api_timeout_ms=60_000) as admin:
            for number, row in self._rows.items():
                written, *others = topics_of(number, row)
                for name in others:
                    admin.create_topics([NewTopic(name, PARTITIONS, replicas)]).check()
                settings = settings_of(row)
                if row["delay"] == "target":
                    settings["delivery.delay.target"] = others[0]
                admin.create_topics([NewTopic(written, PARTITIONS, replicas, settings)]).check()

    def _delete(self) -> None:
        """Later phases are not to wait for compactions of these."""
        with Admin(self._machine.bootstrap, default_api_timeout_ms=60_000) as admin:
            admin.delete_topics(self.topics)

    def _begin(self, number: int) -> None:
        given = json.dumps({"number": number, "row": self._rows[number]})
        words = [self._machine.bootstrap, str(self._directory / "histories"), given]
        with (self._directory / f"case-{number}.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(
                [sys.executable, "-m", "devtools.soak.features.case", *words], stdout=log, stderr=log
            )

    def _judge(self, number: int, row: Row, verdict: Verdict) -> None:
        files = sorted((self._directory / "histories").glob(f"case-{number}-*"))
        operations = list(read_history(line for file in files for line in file.read_text().splitlines()))
        topic = topics_of(number, row)[1 if row["delay"] == "target" else 0]
        found = check(operations)
        if row["copier"] != "none":
            found += check_copies(operations, topic, f"case-{number}-copy")
        log = (self._directory / f"case-{number}.log").read_text()
        found += [Anomaly("case", line) for line in log.splitlines() if line.startswith("FAULT")]
        acknowledged = sum(len(each.sends) for each in operations if each.outcome.value == "ok")
        read = sum(len(poll.records) for each in operations for poll in each.polls)
        if not acknowledged or not read:
            found.append(Anomaly("idle", f"{acknowledged} acknowledged, {read} read"))
        verdict.acknowledged += acknowledged
        verdict.read += read
        said = ", ".join(f"{name} {level}" for name, level in row.items())
        verdict.anomalies += [Anomaly(each.kind, f"{each.detail} [case {number}: {said}]") for each in found]


def topics_of(number: int, row: Row) -> Sequence[str]:
    """The one that is written to; then the target of a schedule topic, and the copy."""
    return [
        name_of(number, row),
        *([f"case-{number}-target"] if row["delay"] == "target" else []),
        *([f"case-{number}-copy"] if row["copier"] != "none" else []),
    ]
