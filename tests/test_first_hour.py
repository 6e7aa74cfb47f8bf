"""Every block of the documents that a newcomer reads runs, and prints what stands below it.

With the compiled package only: some fifty processes take a while, and print the same either way. What needs pip or
Spark is left to `make first-hour`, which runs the same documents in an empty environment.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from devtools.first_hour.document import PAGES, Block, Step, steps
from devtools.first_hour.newcomer import PIP, SPARK, Newcomer
from devtools.first_hour.steady import steady
from devtools.kafka import free_port
from tests.broker.served import environment


def newcomer(folder: Path) -> Newcomer:
    """The Python whose ixion is tested here."""
    programs = folder / "bin"
    programs.mkdir()
    script = programs / "ixion"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ixion "$@"\n')
    script.chmod(0o755)
    surroundings = {**environment(), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    plugin = () if entry_points(group="pytest11", name="ixion") else ("-p", "ixion.testing.plugin")
    home = folder / "home"
    home.mkdir()
    return Newcomer(home, sys.executable, surroundings, port=free_port(), plugin=plugin)


@pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="the same in both runs; done in the compiled one"
)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_is_printed(page: str, tmp_path: Path) -> None:
    reader = newcomer(tmp_path)
    reader.read(page, without=(PIP, SPARK))
    assert reader.faults == [], "\n".join(reader.faults)


def test_what_a_page_shows_otherwise_is_found(tmp_path: Path) -> None:
    reader = newcomer(tmp_path)
    reader._compare("page:1", Step("ixion topic list", "TOPIC\n"), "TOPIC\norders\n")
    (fault,) = reader.faults
    assert fault.startswith("page:1: ixion topic list\n")
    assert "+orders" in fault


def test_steps_of_a_console_block() -> None:
    block = Block("console", "$ one\nfirst\nsecond\n$ two\n", 1)
    assert steps(block) == [Step("one", "first\nsecond\n"), Step("two", "")]


def test_only_what_differs_from_run_to_run_is_left_out() -> None:
    assert steady("ixion serve", "ixion 0.1.0 ready on 127.0.0.1:9092 in 164 ms, data in ./ixion-data") == [
        "ixion VERSION ready on ADDRESS in TIME, data in ./DATA"
    ]
    assert steady("ixion topic list", "orders  3") == ["orders  3"]
    assert steady("ixion perf produce", "p50 1.25  max 3,000") == ["p50 N max N"]
