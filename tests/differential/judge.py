"""Sends the same random histories to ixion and to Apache Kafka 4.3.0, and compares the answers.

    make judges-differential                                    # 2,000 requests, two restarts
    make judges-differential ARGS="--seed 17 --steps 500"       # one again

Both brokers get every request at the same point of the same history. What they draw themselves is compared by the order
in which it came. Only the differences listed in `differences` are accepted. Each difference is shown once, with the
request and both answers. A history ends at the first unexpected difference, because the brokers are no longer in the
same state; the next one begins with other names.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from devtools.kafka import RealKafka
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.differential.areas import History
from tests.differential.differences import is_deliberate
from tests.differential.plain import plain
from tests.differential.side import Side

VERSION: Final = "4.3.0"
SHARED: Final = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "log.segment.delete.delay.ms": "60000",
    "log.retention.hours": "168",
    "group.consumer.session.timeout.ms": "60000",
    "group.consumer.max.session.timeout.ms": "60000",
    "group.min.session.timeout.ms": "1000",
    "transaction.max.timeout.ms": "900000",
}
OF_IXION: Final = {"broker.id": "1"}
OF_KAFKA: Final = {"group.consumer.assignment.interval.ms": "0", "group.consumer.min.assignment.interval.ms": "0"}


class Court:
    def __init__(self, home: Path) -> None:
        self._home = home
        self._kafka = RealKafka(VERSION, home / "kafka", properties={**SHARED, **OF_KAFKA})
        self._ixion = Broker({**SHARED, **OF_IXION}, data=home / "ixion")
        self.differences: list[str] = []
        self.asked = 0

    def __enter__(self) -> Court:
        self._kafka.start()
        self._ixion.start()
        self.sides = [Side("kafka", self._kafka.bootstrap), Side("ixion", self._ixion.bootstrap)]
        for side in self.sides:
            side.await_coordinators()
            side.use_up_an_id()
        return self

    def __exit__(self, *_: object) -> None:
        self._kafka.stop()
        self._ixion.stop()

    def restart(self) -> None:
        for side in self.sides:
            side.close()
        self._kafka.stop()
        self._ixion.stop()
        self._kafka.start()
        self._ixion.start()
        for side, bootstrap in zip(self.sides, (self._kafka.bootstrap, self._ixion.bootstrap), strict=True):
            side.connect(bootstrap)
            side.await_coordinators()

    def hear(self, seed: int, steps: int, restart_at: int = -1) -> int:
        """One history; returns how many requests were compared."""
        drawn = random.Random(seed)
        history = History(drawn, int(time.time()) * 1_000)
        for number in range(steps):
            if number == restart_at:
                self.restart()
            step = history.step()
            answers = [narrowed(step.key, plain(step.send(side), side), history) for side in self.sides]
            self.asked += 1
            kafka, ixion = answers
            if kafka != ixion:
                request = step.make(self.sides[1])
                if not is_deliberate(step.key, request, kafka, ixion):
                    text = f"seed {seed}, step {number}: {step.key.name} {step.version}\n  {request}"
                    self.differences.append(f"{text}\n  kafka {shown(kafka, ixion)}\n  ixion {shown(ixion, kafka)}")
                    return number + 1
        return steps


def narrowed(key: ApiKey, answer: Any, history: History) -> Any:
    """Without groups of other histories, and without the settings of a new topic, which has some of ours."""
    if key is ApiKey.LIST_GROUPS:
        mine = {*history.groups, *history.consumer_groups}
        return {**answer, "groups": [each for each in answer["groups"] if each["group_id"] in mine]}
    if key is ApiKey.CREATE_TOPICS:
        return {"topics": [{**each, "configs": None} for each in answer["topics"]]}
    return answer


def shown(mine: Any, other: Any) -> Any:
    """The parts that differ."""
    if isinstance(mine, dict) and isinstance(other, dict):
        return {name: shown(value, other.get(name)) for name, value in mine.items() if value != other.get(name)}
    if isinstance(mine, list) and isinstance(other, list) and len(mine) == len(other):
        return [shown(one, two) for one, two in zip(mine, other, strict=True) if one != two]
    return mine


def main() -> int:
    parser = argparse.ArgumentParser(description="random histories beside Apache Kafka")
    parser.add_argument("--seed", type=int, help="only this history")
    parser.add_argument("--steps", type=int, default=2_000, help="requests in all")
    parser.add_argument("--length", type=int, default=100, help="requests of one history")
    parser.add_argument("--restarts", type=int, default=2)
    parser.add_argument("--most", type=int, default=40, help="stop after this many differences")
    given = parser.parse_args()
    first = int.from_bytes(os.urandom(4)) if given.seed is None else given.seed
    with tempfile.TemporaryDirectory() as folder, Court(Path(folder)) as court:
        count = max(given.steps // given.length, 1) if given.seed is None else 1
        restarts = set(random.Random(first).sample(range(count), min(given.restarts, count)))
        for number in range(count):
            restart_at = given.length // 2 if number in restarts and given.seed is None else -1
            before = len(court.differences)
            court.hear(first + number, given.length, restart_at)
            for difference in court.differences[before:]:
                print(difference, flush=True)
            if len(court.differences) >= given.most:
                break
    print(f"{court.asked} requests in histories from seed {first} on, {len(court.differences)} unexpected differences")
    return 1 if court.differences else 0


if __name__ == "__main__":
    sys.exit(main())
