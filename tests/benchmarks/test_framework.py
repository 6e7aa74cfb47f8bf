from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh, report
from benchmarks.framework.model import Outcome
from benchmarks.framework.neighbours import Neighbours, own_seconds
from benchmarks.framework.rounds import run

FAST, SLOW = "fast & light", "slow"


def made(contenders: Mapping[str, Contender], *goals: Goal, rounds: int = 3) -> Benchmark:
    return Benchmark(
        name="example",
        title="An <example>",
        rows=(Row(key="add", label="add", unit="ns"), Row(key="size", label="size", unit="bytes", charted=False)),
        goals=goals,
        baseline=SLOW,
        contenders=lambda session: contenders,
        rounds=rounds,
    )


def measured(*goals: Goal) -> Outcome:
    fast, slow = iter([10.0, 40.0, 10.0]), iter([20.0, 80.0, 40.0])
    contenders = {FAST: lambda: {"add": next(fast), "size": 7.0}, SLOW: lambda: {"add": next(slow)}}
    return run(made(contenders, *goals), quick=False, say=lambda text: None)


def test_contenders_take_turns_and_the_order_is_reversed_every_round() -> None:
    turns: list[str] = []

    def contender(name: str) -> Contender:
        def turn() -> Mapping[str, float]:
            turns.append(name)
            return {"add": 1.0}

        return turn

    run(made({"a": contender("a"), "b": contender("b")}), quick=False, say=lambda text: None)
    assert "".join(turns) == "abbaab"
    turns.clear()
    run(made({"a": contender("a"), "b": contender("b")}), quick=True, say=lambda text: None)
    assert "".join(turns) == "ab"


def test_a_ratio_is_taken_round_by_round() -> None:
    outcome = measured()
    assert outcome.cells["add", SLOW].median == 40.0
    assert (outcome.cells["add", SLOW].low, outcome.cells["add", SLOW].high) == (20.0, 80.0)
    assert outcome.ratio(("add", FAST), ("add", SLOW)) == 0.5  # the medians alone would say 0.25


def test_goals_are_ratios_limits_or_not_measured() -> None:
    goals = (
        Goal(label="half", value=("add", FAST), base=("add", SLOW), at_most=0.5),
        Goal(label="thrice", value=("add", SLOW), base=("add", FAST), at_least=3.0),
        Goal(label="small", value=("size", FAST), base=5.0, at_most=1.0),
        Goal(label="unknown", value=("size", FAST), base=("size", SLOW), at_most=1.0),
    )
    assert [verdict.met for verdict in measured(*goals).verdicts()] == [True, False, False, None]
    assert [goal.wanted for goal in goals] == ["≤ 0.5", "≥ 3", "≤ 1", "≤ 1"]
    with pytest.raises(ValueError, match="exactly one of"):
        Goal(label="both", value=("a", "b"), base=1.0, at_most=1.0, at_least=1.0)


def test_a_row_that_was_not_declared_is_an_error() -> None:
    with pytest.raises(ValueError, match="not declared"):
        run(made({"a": lambda: {"speed": 1.0}}), quick=True, say=lambda text: None)


def test_some_contenders_are_measured_and_the_rest_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(report, "CHARTS", tmp_path)
    first = measured()
    assert report.with_last(first, 3) == (first, 3), "nothing was saved yet"
    report.save(first, {"used_by_others_percent": 9})
    benchmark = made({FAST: lambda: {"add": 5.0}, SLOW: lambda: {"add": 1.0}})
    second = run(benchmark, quick=False, say=lambda text: None, only="fast")
    assert second.contenders == (FAST,)
    kept, others = report.with_last(second, 3)
    assert others == 9
    assert kept.contenders == (FAST, SLOW)
    assert {cell: sample.median for cell, sample in kept.cells.items()} == {
        ("add", FAST): 5.0,
        ("size", FAST): 7.0,
        ("add", SLOW): 40.0,
    }
    turns = {"a": dict, "ab": dict, "b": dict}
    for only, names in (("a", ("a",)), ("ab", ("ab",)), ("b,a", ("a", "b")), ("", ("a", "ab", "b"))):
        assert run(made(turns), quick=True, say=lambda text: None, only=only).contenders == names
    with pytest.raises(ValueError, match="begins none of these: fast & light, slow"):
        run(benchmark, quick=False, say=lambda text: None, only="medium")


def test_results_of_another_machine_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(report, "CHARTS", tmp_path)
    assert report.measured_elsewhere("example", {"processor": "one"}) == ""
    report.save(measured(), {"processor": "one"})
    assert report.measured_elsewhere("example", {"processor": "one"}) == ""
    assert report.measured_elsewhere("example", {"processor": "two"}) == "one"


def test_what_a_session_entered_is_closed_at_the_end() -> None:
    class Part:
        closed = False

        def close(self) -> None:
            self.closed = True

    part = Part()

    def contenders(session: Session) -> dict[str, Contender]:
        session.enter(closing(part))
        return {SLOW: lambda: {"add": float(part.closed)}}

    benchmark = Benchmark(
        name="example",
        title="",
        rows=(Row(key="add", label="", unit=""),),
        goals=(),
        baseline=SLOW,
        contenders=contenders,
    )
    outcome = run(benchmark, quick=True, say=lambda text: None)
    assert outcome.cells["add", SLOW].values == (0.0,)
    assert part.closed


def test_an_outcome_becomes_tables_json_and_a_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(report, "CHARTS", tmp_path / "charts")
    outcome = measured(Goal(label="half the time", value=("add", FAST), base=("add", SLOW), at_most=0.5))
    results, chart = report.save(outcome, {"cores": 2})

    read = json.loads(results.read_text())
    assert read["machine"] == {"cores": 2}
    assert read["rows"][0]["contenders"][FAST]["values"] == [10.0, 40.0, 10.0]
    assert read["goals"] == [{"label": "half the time", "ratio": 0.5, "wanted": "≤ 0.5", "met": True}]

    picture = ElementTree.fromstring(chart.read_text())
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "10 · 0.50 ×" in texts
    assert "add, ns" in texts
    assert "size, bytes" not in texts
    bars = {
        title.text: float(bar.attrib["width"])
        for bar in picture.iter("{http://www.w3.org/2000/svg}rect")
        for title in bar.iter("{http://www.w3.org/2000/svg}title")
    }
    assert bars[FAST] == bars[SLOW] / 4

    console = Console(width=120, file=io.StringIO(), record=True)
    report.show(outcome, console)
    text = console.export_text()
    assert "half the time" in text
    assert "0.50" in text
    assert "yes" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.03124, "0.0312"),
        (1.234, "1.23"),
        (45.64, "45.6"),
        (789.4, "789"),
        (12345, "12,300"),
        (99.99, "100"),
    ],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert report.number(value) == text


def test_a_fresh_process_gives_its_result_back() -> None:
    assert fresh(divmod, 17, 5) == (3, 2)


def test_what_we_use_ourselves_is_not_the_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    second = os.sysconf("SC_CLK_TCK")  # in ticks
    machine, own = iter([(0, 0), (4 * second, 3 * second)]), iter([10.0, 11.0])
    monkeypatch.setattr("benchmarks.framework.neighbours._machine", lambda: next(machine))
    monkeypatch.setattr("benchmarks.framework.neighbours.own_seconds", lambda: next(own))
    assert Neighbours().share() == 0.5  # two cores, two seconds, three busy; one of them ours


def test_a_server_that_runs_is_ours_too() -> None:
    """One that a child of ours has started, as a virtual machine or a broker may be."""
    busy = "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\ninput()"
    starter = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    before = own_seconds()
    with subprocess.Popen([sys.executable, "-c", starter], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert own_seconds() - before > 0.15
        child.communicate(b"\n")
    assert own_seconds() - before > 0.15
