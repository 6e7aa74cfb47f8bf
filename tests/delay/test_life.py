"""Random lives of a partition hold; a broker without one of the rules of `log.partition_logs` is found."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.log.config import LogConfig
from ixion.broker.log.log import Log
from ixion.broker.log.mover import Mover
from ixion.broker.log.partition_logs import Pair, PartitionLogs
from ixion.language.model.topic_partition import TopicPartition
from tests.delay.life import live
from tests.lives import lives

STEPS = 40
ENOUGH = 200  # lives in which each mutant must be found

Patch = Callable[[Any, str, Any], None]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Lives are full of faults that a broker logs."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def live_all(path: Path, count: int) -> None:
    for seed in range(count):
        live(seed, path / str(seed), STEPS)


def test_lives(tmp_path: Path) -> None:
    live_all(tmp_path, lives(12))


def old_settings_move(put: Patch) -> None:
    """New settings reach the logs in use only."""

    def apply(self: PartitionLogs, key: TopicPartition, config: LogConfig) -> None:
        log = self._manager.logs.get(key)
        if log is not None:
            log.reconfigure(config)

    put(PartitionLogs, "_apply", apply)


def cleaner_goes_on(put: Patch) -> None:
    """A log is compacted while it moves."""
    put(PartitionLogs, "pause_cleaning", lambda _: None)


def sibling_stays(put: Patch) -> None:
    """Delayed records stay in the old directory."""

    def make_copies(self: PartitionLogs, directory: Any) -> list[Pair]:
        return [pair for pair in real(self, directory) if pair[0].topic == self.key[0]]

    real = PartitionLogs.make_copies
    put(PartitionLogs, "make_copies", make_copies)
    put(PartitionLogs, "may_put_in_place", lambda *_: True)


def empty_log_leads(put: Patch) -> None:
    """An empty log is made although the full one may be in an offline directory."""
    put(PartitionLogs, "check_none_offline", lambda _: None)


def last_batches_stay(put: Patch) -> None:
    """What was appended in the last moment of a move is not copied."""

    def copy_rest(_self: Mover, current: Log, _future: Log) -> bool:
        current.check_open()
        return True

    put(Mover, "_copy_rest", copy_rest)


@pytest.mark.parametrize(
    "break_rule", [old_settings_move, cleaner_goes_on, sibling_stays, empty_log_leads, last_batches_stay]
)
def test_a_broken_rule_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, break_rule: Callable[[Patch], None]
) -> None:
    break_rule(monkeypatch.setattr)
    with pytest.raises((AssertionError, KeyError, ValueError)):  # of the judge, or of the world
        live_all(tmp_path, ENOUGH)
