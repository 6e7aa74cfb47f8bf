"""Compaction beside transactions, against a plain list (`compacted_life`), which must find broken compactions, too."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from ixion.broker.log.cleaner import dirty_part
from ixion.broker.log.compaction import build_map, compact, find_aborted
from ixion.broker.log.log import Log
from ixion.broker.log.offset_map import ENTRY_SIZE, OffsetMap
from ixion.broker.log.txn_index import AbortedTxn
from tests.lives import lives
from tests.log import compacted_life
from tests.log.compacted_life import Clean, Life

STEPS = 60
FIRST_SEED = int(os.environ.get("IXION_FUZZ_SEED", "1"))
SEEDS_OF_A_MUTANT = 60


def cleaning(
    *,
    end_of: Callable[[Log], int] | None = None,
    aborted_of: Callable[[Log, int], list[AbortedTxn]] = find_aborted,
) -> Clean:
    """What the cleaner does, or a mutant of it: one that ends elsewhere, or does not know all aborted transactions."""

    def clean(log: Log, checkpoint: int, now_ms: int, keys: int) -> int:
        part = dirty_part(log, checkpoint, now_ms)
        end = part.end if end_of is None else max(part.start, end_of(log))
        offsets = OffsetMap(keys * ENTRY_SIZE)
        with log.replacing:
            aborted = aborted_of(log, end)
            end = build_map(log, part.start, end, aborted, offsets)
            compact(log, end, aborted, offsets, now_ms, part.truncations)
        return end

    return clean


def test_readers_find_what_the_list_says() -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + lives(40)):
        try:
            Life(seed, cleaning()).live(STEPS)
        except AssertionError as error:
            raise AssertionError(f"life {seed}: {error}") from error


def test_a_broken_move_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compacted_life, "_inherit", lambda copy, log: copy.raise_high_watermark(log.high_watermark))
    for seed in range(SEEDS_OF_A_MUTANT):
        try:
            Life(seed, cleaning()).live(STEPS)
        except AssertionError:
            return
    raise AssertionError("it is not found")


def ended_below(log: Log, end: int) -> list[AbortedTxn]:
    return [txn for txn in find_aborted(log, end) if txn.last_offset < end]


def none_in_the_active_segment(log: Log, end: int) -> list[AbortedTxn]:
    return [txn for txn in find_aborted(log, end) if txn.last_offset < log.segments.active.base_offset]


def without_entries(log: Log, checkpoint: int, now_ms: int, keys: int) -> int:
    """Loses the index entries of transactions that began in an earlier segment."""
    end = cleaning()(log, checkpoint, now_ms, keys)
    for segment in log.segments:
        txns = [txn for txn in segment.txn_index.entries() if txn.first_offset >= segment.base_offset]
        if segment is not log.segments.active:
            segment.txn_index.reset()
            for txn in txns:
                segment.txn_index.append(txn)
    return end


@pytest.mark.parametrize(
    "mutant",
    [
        cleaning(aborted_of=ended_below),
        cleaning(aborted_of=none_in_the_active_segment),
        cleaning(end_of=lambda log: min(log.high_watermark, log.visible_end, log.segments.active.base_offset)),
        cleaning(end_of=lambda log: min(log.last_stable_offset, log.segments.active.base_offset)),
        without_entries,
    ],
    ids=["markers-below-the-end", "sealed-markers", "not-stable", "not-visible", "lost-entries"],
)
def test_a_broken_compaction_is_found(mutant: Clean) -> None:
    found = 0
    for seed in range(SEEDS_OF_A_MUTANT):
        try:
            Life(seed, mutant).live(STEPS)
        except AssertionError:
            found += 1
            break
    assert found
