"""Our assignors beside those of Kafka's Java client: the same bytes to every member, in groups made at random.

IXION_ASSIGNOR_CASES says how many; `recorded_assignments.txt` has some of them with Java's answers, for runs without a
JVM: `python -m tests.clients.test_assignors_java` writes it anew.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from devtools import jars
from devtools.jvm import compile_java, run_java
from devtools.parts import need
from ixion.clients.assignors import ASSIGNORS
from ixion.clients.core.consumer.classic import read_assignment
from tests.clients.assignor_cases import answer, members_of, some_cases

SOURCE = Path(__file__).parent / "java" / "AssignorPeer.java"
RECORDED = Path(__file__).parent / "recorded_assignments.txt"
KAFKA = "clients-4.3.0"
CASES = int(os.environ.get("IXION_ASSIGNOR_CASES", "800"))


def java_answers(cases: list[str]) -> list[str]:
    path = jars.classpath(KAFKA)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "cases"
        file.write_text("\n".join(cases), "utf-8")
        options = ("-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8")
        classes = compile_java(SOURCE, path)
        printed = run_java("AssignorPeer", str(file), classpath=f"{classes}:{path}", options=options)
    return printed.splitlines()


def test_every_member_gets_the_bytes_that_java_would_send() -> None:
    need(KAFKA)
    cases = some_cases(16, CASES)
    answers = java_answers(cases)
    assert len(answers) == len(cases)
    broken = 0
    for case, theirs in zip(cases, answers, strict=True):
        if is_broken(case, theirs):
            broken += 1
        else:
            assert answer(case) == theirs, case
    assert broken <= len(cases) // 100


def is_broken(case: str, theirs: str) -> bool:
    """Java's assignor raises, or gives a partition to a member that does not subscribe to its topic: one that
    owned it in an older generation."""
    if theirs.startswith("! java.lang.NullPointerException"):
        return True
    subscribed = {name: member.topics for name, member in members_of(case).items()}
    return any(
        place.topic not in subscribed[name]
        for name, _, data in (word.partition("=") for word in theirs.split())
        for place in read_assignment(bytes.fromhex(data))
    )


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_recorded_cases(strategy: str) -> None:
    lines = RECORDED.read_text("utf-8").splitlines()
    pairs = [pair for pair in zip(lines[::2], lines[1::2], strict=True) if pair[0].startswith(strategy + " ")]
    assert len(pairs) >= 10
    for case, theirs in pairs:
        assert answer(case) == theirs, case


if __name__ == "__main__":
    chosen: list[str] = []
    for name in ASSIGNORS:
        alike = [case for case in some_cases(17, 400) if case.startswith(name + " ") and len(case) < 1000]
        chosen += sorted(alike, key=len)[-12:]
    RECORDED.write_text(
        "".join(f"{case}\n{theirs}\n" for case, theirs in zip(chosen, java_answers(chosen), strict=True))
    )
