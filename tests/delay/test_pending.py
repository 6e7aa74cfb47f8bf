"""The wheel of packed buckets: order, memory, and bounded work."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.broker.schedules.bucket import CHUNK
from ixion.broker.schedules.ids import ScheduleIds
from ixion.broker.schedules.pages import Pages
from ixion.broker.schedules.pending import DAY_MS, ENOUGH, HOUR_MS, Pending

NOW = 1_700_000_000_000
LARGE = int(os.environ.get("IXION_DELAY_RECORDS", "20000"))  # `make soak-delay` sets a million


def drain(pending: Pending, now_ms: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while True:
        while pending.spread(now_ms):
            pass
        some = pending.pop(now_ms, 256)
        if not some:
            return found
        found += some


def test_a1_nothing_leaves_early_and_all_leaves_in_order() -> None:
    random = Random(1)
    pending = Pending()
    due = sorted((NOW + random.randrange(600_000), offset) for offset in range(LARGE))
    for due_ms, offset in sorted(due, key=lambda each: each[1]):
        pending.add(due_ms, offset)
    found: list[tuple[int, int]] = []
    now_ms = NOW
    while pending.count:
        wake_ms = pending.wake_ms()
        assert wake_ms >= 0
        now_ms = max(now_ms, wake_ms)
        some = drain(pending, now_ms)
        assert all(due_ms <= now_ms for due_ms, _ in some)
        assert all(due_ms >= now_ms - 1 for due_ms, _ in some), "nor late, if the task rings in time"
        found += some
    assert found == due


@pytest.mark.parametrize(("spread_ms", "most"), [(600_000, 32), (3 * HOUR_MS, 1)], ids=["near", "far"])
def test_a4_a_waiting_record_takes_few_bytes_and_a_far_one_hardly_any(
    tmp_path: Path, spread_ms: int, most: int
) -> None:
    random = Random(2)
    count = max(LARGE, 30_000) if most > 1 else max(LARGE, 100_000)
    start = NOW // DAY_MS * DAY_MS + (0 if most > 1 else 5 * DAY_MS)
    times = [start + random.randrange(spread_ms) for _ in range(count)]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    pending = Pending(Pages(str(tmp_path)))
    for offset, due_ms in enumerate(times):
        pending.add(due_ms, offset)
    while pending.spread(start - 4 * DAY_MS if most == 1 else start):
        pass
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken / count < most


def test_chunks_on_the_disk_do_what_a_set_does(tmp_path: Path) -> None:
    random = Random(5)
    pending, model = Pending(Pages(str(tmp_path))), set[tuple[int, int]]()
    for offset in range(8 * CHUNK):
        if random.random() < 0.02:
            continue  # its transaction is open
        due = (NOW + 2 * DAY_MS + random.randrange(HOUR_MS), offset)
        pending.add(*due)
        model.add(due)
    missing = sorted(set(range(8 * CHUNK)) - {offset for _, offset in model})
    for offset in missing:
        pending.add(NOW + 2 * DAY_MS, offset)
        model.add((NOW + 2 * DAY_MS, offset))
    assert any(page >= 0 for level in pending.levels for b in level.buckets.values() for _, page, _ in b.stored())
    for due in random.sample(sorted(model), 500):
        assert pending.remove(*due)
        assert not pending.remove(*due)
        model.discard(due)
    assert pending.count == len(model)
    assert drain(pending, NOW + 3 * DAY_MS) == sorted(model)


def test_a4_an_id_takes_fewer_than_64_bytes() -> None:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    ids = ScheduleIds()
    for number in range(20_000):
        ids.put(b"%d" % number, number)
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert ids.count == 20_000
    assert taken / 20_000 < 64
    assert all(ids.get(b"%d" % number) == number for number in range(0, 20_000, 777))


def test_one_step_moves_a_chunk_at_most_however_many_are_due_at_once() -> None:
    pending = Pending()
    for offset in range(3 * ENOUGH):
        pending.add(NOW + 5, offset)
    steps = 0
    while pending.spread(NOW + 5):
        steps += 1
    assert steps >= 2 * (ENOUGH // CHUNK)
    assert pending._at_hand <= ENOUGH + CHUNK, "no more is at hand than is delivered soon"
    assert [offset for _, offset in drain(pending, NOW + 5)] == list(range(3 * ENOUGH))


def test_it_does_not_ask_to_be_woken_for_what_cannot_be_spread_yet() -> None:
    pending = Pending()
    for offset in range(3 * ENOUGH):
        pending.add(NOW + 900, offset)
    while pending.spread(NOW + 850):
        pass
    assert pending.wake_ms() == NOW + 900


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["add", "late", "remove", "pass"]), st.integers(0, 3 * HOUR_MS), st.integers(0, 200)),
    max_size=60,
)


@settings(deadline=None)
@given(OPERATIONS)
def test_it_does_what_a_sorted_list_does(operations: list[tuple[str, int, int]]) -> None:
    pending, model, now_ms, offset = Pending(), set[tuple[int, int]](), NOW, 1000
    for what, number, place in operations:
        if what in ("add", "late"):
            offset += 1
            at = offset if what == "add" else offset * 7919 % 1000  # a transaction commits late: a smaller offset
            if what == "late" and any(at == other for _, other in model):
                continue
            pending.add(now_ms + number, at)
            model.add((now_ms + number, at))
        elif what == "remove":
            due_ms, at = sorted(model)[place % len(model)] if model else (NOW, 1)
            assert pending.remove(due_ms, at) == ((due_ms, at) in model)
            model.discard((due_ms, at))
            assert not pending.remove(due_ms, at)
        else:
            now_ms += number
            expected = sorted(each for each in model if each[0] <= now_ms)
            assert drain(pending, now_ms) == expected
            model.difference_update(expected)
        assert pending.count == len(model)
        assert pending.first_offset() == min((at for _, at in model), default=-1)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40))))
def test_ids_do_what_a_dictionary_does(operations: list[tuple[bool, int]]) -> None:
    ids, model = ScheduleIds(), dict[bytes, int]()
    for offset, (puts, number) in enumerate(operations):
        name = b"%d" % number
        if puts:
            ids.put(name, offset)
            model[name] = offset
        else:
            ids.remove(name, -5)
            ids.remove(name, model.pop(name, -1))
        assert ids.count == len(model)
        assert {name: ids.get(name) for name in model} == model
        assert ids.get(b"nobody") == -1
