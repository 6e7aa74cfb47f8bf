"""A log against a plain list, through anything that can happen to it in any order.

Rules: append (plain, idempotent, compressed), roll, flush, truncate, delete records, retention, compaction, a clean
restart, a kill or a power failure in the middle of the last operation. After each of them the log must hold just what
the list says; after compaction, a part of it with the last record of every key; after a power failure, a beginning of
it that reaches the recovery point at least.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ixion.broker.log.cleaner import dirty_part
from ixion.broker.log.compaction import build_map, compact
from ixion.broker.log.config import LogConfig
from ixion.broker.log.log import Log
from ixion.broker.log.offset_map import OffsetMap
from ixion.broker.log.retention import delete_doomed, retain
from ixion.language.records.compression import Codec
from tests.lives import lives
from tests.log.journal import Journal, materialize
from tests.log.support import NOW, Box, batch, stored

Records = list[tuple[int, bytes]]


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scratch = Path(tempfile.mkdtemp())
        self.lives = 0
        self.model: Records = []  # in offset order
        self.before: Records = []  # the model before the last operation
        self.keys: dict[int, bytes] = {}
        self.sequence = 0
        self.now_ms = NOW
        self.checkpointed = -1

    @initialize(compacted=st.booleans(), interval=st.sampled_from([0, 200, 4096]))
    def start(self, compacted: bool, interval: int) -> None:
        self.config = LogConfig(
            segment_bytes=900,
            index_interval_bytes=interval,
            retention_bytes=3000,
            file_delete_delay_ms=0,
            cleanup_policy=frozenset({"compact"} if compacted else {"delete"}),
        )
        self.open(self.scratch / "0")

    def open(self, root: Path, *, clean: bool = False, recovery_point: int = 0, log_start: int = 0) -> None:
        root.mkdir(exist_ok=True)
        self.root = root
        self.journal = Journal(root)
        self.box = Box(root, self.config, self.journal)
        self.log: Log = self.box.open(clean=clean, recovery_point=recovery_point, log_start=log_start)
        self.mark()

    def mark(self) -> None:
        """An operation begins."""
        self.before = list(self.model)
        self.steps = len(self.journal.steps)
        self.recovery_point = self.log.recovery_point
        self.log_start = self.log.log_start

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.abandon()
        shutil.rmtree(self.scratch)

    @rule(
        keys=st.lists(st.integers(0, 4), min_size=1, max_size=4),
        size=st.integers(0, 150),
        codec=st.sampled_from(list(Codec)),
        idempotent=st.booleans(),
        times=st.integers(1, 12),
    )
    def append(self, keys: list[int], size: int, codec: Codec, idempotent: bool, times: int) -> None:
        self.mark()
        for number in range(times):
            self.append_one([(key + number) % 5 for key in keys], size, codec, idempotent)

    def append_one(self, keys: list[int], size: int, codec: Codec, idempotent: bool) -> None:
        values = [b"%d." % (self.log.end_offset + number) * 3 + b"x" * size for number in range(len(keys))]
        names = [b"k%d" % key for key in keys]
        producer = (self.lives + 1, 0, self.sequence) if idempotent else None
        data = batch(*values, keys=names, codec=codec, producer=producer, timestamp=self.now_ms)
        info = self.log.append_as_leader(data, self.lives, now_ms=self.now_ms)
        for number, (name, value) in enumerate(zip(names, values, strict=True)):
            self.model.append((info.first_offset + number, value))
            self.keys[info.first_offset + number] = name
        self.sequence += len(keys) if idempotent else 0
        self.now_ms += 10

    @rule()
    def roll(self) -> None:
        self.mark()
        self.log.roll()

    @rule(part=st.floats(0, 1))
    def flush(self, part: float) -> None:
        self.mark()
        self.log.flush(int(self.log.end_offset * part))

    @precondition(lambda self: self.model and not self.config.compact)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        self.mark()
        offset = data.draw(st.integers(self.log.log_start, self.log.end_offset))
        self.log.truncate_to(offset)
        assert self.log.end_offset <= offset
        assert all(at < self.log.end_offset for at, _ in stored(self.log))
        self.model = [record for record in self.model if record[0] < self.log.end_offset]
        self.lives += 1  # producers may have been forgotten; the next ones are new
        self.sequence = 0

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.mark()
        self.log.raise_high_watermark(self.log.end_offset)
        self.log.raise_log_start(data.draw(st.integers(0, self.log.end_offset)))
        self.model = [record for record in self.model if record[0] >= self.log.log_start]

    @rule()
    def retain(self) -> None:
        self.mark()
        self.log.raise_high_watermark(self.log.end_offset)
        retain(self.log, self.now_ms)
        delete_doomed(self.log, self.now_ms)
        self.model = [record for record in self.model if record[0] >= self.log.log_start]

    @precondition(lambda self: self.config.compact)
    @rule()
    def compact(self) -> None:
        self.mark()
        self.log.raise_high_watermark(self.log.end_offset)
        part = dirty_part(self.log, self.checkpointed, self.now_ms)
        if not part.dirty_bytes:
            return
        offset_map = OffsetMap(24 * 100)
        end = build_map(self.log, part.start, part.end, [], offset_map)
        compact(self.log, end, [], offset_map, self.now_ms, part.truncations)
        delete_doomed(self.log, self.now_ms)
        self.checkpointed = end
        found = stored(self.log)
        assert set(found) <= set(self.model)
        latest = {self.keys[offset]: (offset, value) for offset, value in self.model}
        assert set(latest.values()) <= set(found)
        self.model = found

    @rule()
    def restart(self) -> None:
        log_start = self.log.log_start
        self.log.close()
        self.open(self.root, clean=True, log_start=log_start)

    @rule(data=st.data())
    def killed(self, data: st.DataObject) -> None:
        """Somewhere in the last operation, or after it. What it had done by then counts."""
        before, after = self.before, self.model
        self.crash(data, None)
        found = stored(self.log)
        self.check_found(found, before, after)
        self.model, self.before = found, list(found)

    @rule(data=st.data(), seed=st.integers(0, 1 << 16))
    def power_fails(self, data: st.DataObject, seed: int) -> None:
        before, after = self.before, self.model
        floor = min(self.recovery_point, self.log.recovery_point)
        self.crash(data, random.Random(seed))
        found = stored(self.log)
        if not self.config.compact:
            kept = [record for record in before if record[0] < floor and record[0] >= self.log.log_start]
            assert [record for record in found if record[0] < floor][: len(kept)] == kept
        assert set(found) <= set(before) | set(after)
        self.model, self.before = found, list(found)

    def crash(self, data: st.DataObject, power: random.Random | None) -> None:
        steps = data.draw(st.integers(self.steps, len(self.journal.steps)))
        torn = data.draw(st.none() | st.integers(0, 100)) if power is None and steps > self.steps else None
        if steps and self.journal.steps[steps - 1][0] != "write":
            torn = None
        self.log.abandon()
        self.lives += 1
        self.sequence = 0
        target = self.scratch / str(self.lives)
        while target.exists():
            self.lives += 1
            target = self.scratch / str(self.lives)
        materialize(self.journal.steps[:steps], target, power, torn)
        point = min(self.recovery_point, self.log.recovery_point)
        start = min(self.log_start, self.log.log_start)
        self.open(target, recovery_point=point, log_start=start)

    def check_found(self, found: Records, before: Records, after: Records) -> None:
        start = self.log.log_start
        before = [record for record in before if record[0] >= start]
        after = [record for record in after if record[0] >= start]
        if self.config.compact:
            assert set(before) & set(after) <= set(found) <= set(before) | set(after)
            return
        longer, shorter = (before, after) if len(before) > len(after) else (after, before)
        assert found == longer[: len(found)]
        assert len(found) >= len(shorter)

    @invariant()
    def the_log_holds_what_the_list_says(self) -> None:
        if hasattr(self, "log"):
            log = self.log
            assert stored(log) == self.model
            assert log.log_start <= log.last_stable_offset <= log.high_watermark <= log.end_offset
            assert log.recovery_point <= log.end_offset


LogMachine.TestCase.settings = settings(
    max_examples=lives(80),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
TestLogMachine = LogMachine.TestCase
