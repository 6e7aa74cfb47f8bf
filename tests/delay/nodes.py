"""Several brokers with replicas of one partition with delayed records, in one process, with real logs and fetchers.

Use it for copies of delayed records and changes of leaders. For one broker, use `world`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from ixion.broker.log.config import LogConfig
from ixion.broker.log.prepare import Origin
from ixion.broker.log.view import Bound
from ixion.broker.replica.results import AppendResult, FetchWish
from ixion.broker.schedules.journal import batches
from ixion.broker.schedules.schedules import Schedules
from ixion.broker.schedules.targets import Targets
from ixion.language.model.delay_names import sibling_of
from tests.delay.world import Sent, records
from tests.log.support import NOW
from tests.replica.nodes import KEY, Inline, Node, Nodes


def none() -> Targets:
    raise AssertionError("there are no schedule topics")


class DelayNodes(Nodes):
    def __init__(self, path: Path, count: int = 3, min_isr: int = 2) -> None:
        self.schedules: dict[int, Schedules] = {}
        self.chance: random.Random | None = None
        super().__init__(path, count, min_isr)

    @property
    def config(self) -> LogConfig:
        return LogConfig(delivery_delay_mode="record", max_message_bytes=4096, segment_bytes=4096)

    @config.setter
    def config(self, _: LogConfig) -> None:
        """The one of `Nodes`; ours is fixed."""

    def opened(self, node: Node) -> None:
        known = self.schedules.get(node.number)
        if known is not None:
            known._stopped = True
        self.schedules[node.number] = Schedules(
            node.replicas,
            node.logs,
            timer=node.replicas._timer,
            loop=node.replicas._loop,
            workers=Inline(),
            clock_ms=self.now_ms,
            monotonic_ms=lambda: self.clock.now_ms,
            targets=none,
        )

    def arrange(self, wishes: list[FetchWish]) -> None:
        if self.chance is not None:
            self.chance.shuffle(wishes)

    def now_ms(self) -> int:
        return NOW + self.clock.now_ms

    def send(self, *sent: Sent, done: Callable[[list[AppendResult]], None], **options: object) -> None:
        """A produce with acks=all at the present leader."""
        data = records(*sent, **options)  # type: ignore[arg-type]
        self.nodes[self.leader].replicas.append(60_000, -1, Origin.CLIENT, [(*KEY, data)], done)

    def visible(self, number: int) -> list[tuple[int, bytes]]:
        """Offset and value of every record that a consumer of this broker could read."""
        node = self.nodes[number]
        return [(offset, value) for offset, _, value in node.values(node.partition.log.high_watermark)]

    def waiting(self, number: int) -> int:
        schedule = self.schedules[number].get(KEY)
        assert schedule is not None
        assert schedule.state is not None
        return schedule.state.count

    def notes(self, number: int) -> list[tuple[int, int]]:
        """Offset and checksum of every note that a broker has."""
        log = self.nodes[number].logs.get(sibling_of("t"), 0)
        if log is None or log.end_offset == log.log_start:
            return []
        return [(int(view.base_offset), int(view.crc)) for view in batches(log, log.log_start, 1 << 20, Bound.END)]
