"""`ixion group describe --watch`: lag over time."""

from __future__ import annotations

import json

import pytest

from ixion.cli.group.watch import watch_group
from ixion.clients.admin.runner import AdminRunner
from tests.cli.harness import Ixion


class Rounds:
    """A clock that moves by two seconds a round, and Ctrl-C in the third."""

    def __init__(self, ixion: Ixion, topic: str, group: str) -> None:
        self.now_s = 1_000_000.0
        self._left = 2
        self._ixion = ixion
        self._topic = topic
        self._group = group
        self.printed = ""

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        assert seconds == 2
        self.printed += self._ixion._capture.readouterr().out.decode()
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1
        self.now_s += seconds
        self._ixion("produce", self._topic, stdin="x\n" * 6)
        self._ixion("group", "reset", self._group, "--shift", "10", "--execute")


@pytest.mark.parametrize("as_json", [True, False])
def test_lag_over_time(ixion: Ixion, as_json: bool) -> None:
    topic = ixion.topic()
    group = f"{topic}-group"
    ixion("produce", topic, stdin="x\n" * 30)
    ixion("group", "reset", group, "-t", topic, "--to-earliest", "--execute")
    rounds = Rounds(ixion, topic, group)
    with AdminRunner(ixion.bootstrap) as admin:
        watch_group(admin, group, 2, as_json, sleep=rounds.sleep, clock=rounds.clock)
    lines = rounds.printed.splitlines()
    if as_json:
        rows = [json.loads(line) for line in lines]
        assert [(row["lag"], row["lag/s"], row["read/s"]) for row in rows] == [
            (30, None, None),
            (26, -2, 5),
            (22, -2, 5),
        ]
    else:
        assert lines[0].split() == ["TIME", "TOPIC", "MEMBERS", "COMMITTED", "END", "LAG", "LAG/S", "READ/S"]
        assert lines[2].split()[1:] == [topic, "0", "10", "36", "26", "-2.0", "5.0"]


def test_no_time_to_wait_is_refused(ixion: Ixion) -> None:
    assert "--watch must be more than 0 seconds" in ixion.refused("group", "describe", "g", "--watch", "0", code=2)
    assert "there is no group 'g'" in ixion("group", "describe", "g", "-w", "1", code=1) + ixion.errors
