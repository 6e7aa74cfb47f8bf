"""Random lives of a partition with delayed records, beside a model that knows what must come of them.

Records with and without ids, cancels, transactions, time that passes and kills in any order. After each step the broker
knows what the model knows, and so does a reader of the notes (`listing`).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ixion.broker.schedules.listing import listed
from ixion.language.model.errors import ErrorCode
from tests.delay.world import DelayWorld, after, cancel
from tests.lives import lives

IDS = [b"", b"a", b"b", b"c"]
DELAYS = st.sampled_from([0, 1, 5, 500, 999, 1_000, 60_000, 3_600_000, 90_000_000])
Model = dict[int, tuple[int, bytes, bytes]]  # by offset: due time, id, value


class Life(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.world = DelayWorld(Path(self.folder.name))
        self.world.start()
        self.waiting: Model = {}
        self.open: list[tuple[str, int, int, bytes, bytes]] = []  # of the transaction: what, offset, due, id, value
        self.delivered: list[bytes] = []
        self.sequence = 0
        self.epoch = 0
        self.number = 0

    def teardown(self) -> None:
        self.world.close()
        self.folder.cleanup()

    def _value(self) -> bytes:
        self.number += 1
        return b"%d" % self.number

    def _accept(self, offset: int, due: int, name: bytes, value: bytes) -> None:
        if name:
            self.waiting = {key: each for key, each in self.waiting.items() if each[1] != name}
        self.waiting[offset] = (due, name, value)

    def _cancel(self, name: bytes) -> None:
        if name == b"*":
            self.waiting = {}
        elif name.startswith(b"@"):
            self.waiting.pop(int(name[1:]), None)
        else:
            self.waiting = {key: each for key, each in self.waiting.items() if each[1] != name}

    def _deliver(self) -> None:
        now = self.world.now_ms()
        due = sorted((each[0], key) for key, each in self.waiting.items() if each[0] <= now)
        self.delivered += [self.waiting.pop(key)[2] for _, key in due]

    @rule(delays=st.lists(DELAYS, min_size=1, max_size=3), name=st.sampled_from(IDS))
    def send(self, delays: list[int], name: bytes) -> None:
        values = [self._value() for _ in delays]
        more = {"id": name} if name else {}
        result = self.world.send(*(after(value, delay, **more) for value, delay in zip(values, delays, strict=True)))
        assert result.code == ErrorCode.NONE
        now = self.world.now_ms()
        for place, (value, delay) in enumerate(zip(values, delays, strict=True)):
            self._accept(result.first_offset + place, now + delay, name, value)
        self.world.advance(0)

    @rule(name=st.sampled_from([*IDS[1:], b"*", b"nobody"]))
    def cancel(self, name: bytes) -> None:
        self.world.send(cancel(name))
        self._cancel(name)

    @rule(offset=st.integers(0, 40))
    def cancel_offset(self, offset: int) -> None:
        self.world.send(cancel(b"@%d" % offset))
        self._cancel(b"@%d" % offset)

    @rule(delay=DELAYS, name=st.sampled_from(IDS), cancels=st.sampled_from([b"", b"a", b"*"]))
    def send_in_transaction(self, delay: int, name: bytes, cancels: bytes) -> None:
        value = self._value()
        sent = [after(value, delay, **({"id": name} if name else {}))]
        if cancels:
            sent.append(cancel(cancels))
        result = self.world.send(*sent, producer=(7, self.epoch, self.sequence), transactional=True)
        assert result.code == ErrorCode.NONE
        self.sequence += len(sent)
        self.open.append(("waits", result.first_offset, self.world.now_ms() + delay, name, value))
        if cancels:
            self.open.append(("cancels", -1, -1, cancels, b""))

    @precondition(lambda self: bool(self.open))
    @rule(commit=st.booleans())
    def end_transaction(self, commit: bool) -> None:
        self.world.mark(7, self.epoch, commit=commit)
        for what, offset, due, name, value in self.open if commit else []:
            if what == "waits":
                self._accept(offset, due, name, value)
            else:
                self._cancel(name)
        self.open = []

    @rule(ms=st.sampled_from([1, 4, 200, 1_000, 3_600_000, 100_000_000]))
    def pass_time(self, ms: int) -> None:
        self.world.advance(ms)

    @rule(ms=st.sampled_from([0, 5_000, 200_000_000]))
    def kill(self, ms: int) -> None:
        self.world = self.world.restart(down_ms=ms)

    @invariant()
    def all_agree(self) -> None:
        self.world.advance(1)  # what is due now is delivered by now
        self._deliver()
        world = self.world
        held = sum(what == "waits" for what, *_ in self.open)
        assert world.state.pending.count == len(self.waiting)
        assert [value for value in world.values() if value] == self.delivered
        shown = listed(world.state.journal.notes(0)).rows()
        assert {row.offset for row in shown if row.committed} == set(self.waiting)
        assert sum(not row.committed for row in shown) == held
        assert world.state.held >= held


Life.TestCase.settings = settings(max_examples=lives(12), stateful_step_count=25, deadline=None)
TestLife = Life.TestCase
