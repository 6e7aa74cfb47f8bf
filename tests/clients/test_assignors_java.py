"""Our assignors beside those of Kafka's Java client, on cases made at random.

Range and round robin agree to the order of the partitions. Cooperative-sticky may choose other partitions to move, so
its qualities are compared: as many partitions kept by their owners, and as many handed out in the first round.
"""

from __future__ import annotations

import random
from pathlib import Path

from devtools import jars
from devtools.jvm import compile_java, run_java
from devtools.parts import need
from ixion.clients.assignors import ASSIGNORS, Assignment, Member
from ixion.clients.metadata import TopicPartition

SOURCE = Path(__file__).parent / "java" / "AssignorPeer.java"
KAFKA = "kafka-3.9.1"
Case = tuple[str, dict[str, int], dict[str, Member]]


def some_case(dice: random.Random) -> Case:
    strategy = dice.choice(["range", "roundrobin", "cooperative-sticky"])
    counts = {f"t{number}": dice.randrange(1, 8) for number in range(dice.randrange(1, 4))}
    names = [f"m{number}" for number in range(dice.randrange(1, 7))]
    free = [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
    dice.shuffle(free)
    members = {}
    for name in names:
        topics = frozenset(counts)
        owned: tuple[TopicPartition, ...] = ()
        if strategy == "cooperative-sticky":
            owned = tuple(free.pop() for _ in range(min(len(free), dice.randrange(5))))
        else:
            topics = frozenset(dice.sample(sorted(counts), dice.randrange(1, len(counts) + 1)))
        instance = f"i{dice.randrange(100)}-{name}" if dice.random() < 0.4 else None
        members[name] = Member(topics, owned, 5, instance)
    return strategy, counts, members


def written(case: Case) -> str:
    strategy, counts, members = case
    words = [strategy, ",".join(f"{topic}:{count}" for topic, count in counts.items())]
    for name, member in members.items():
        owned = "+".join(f"{place.topic}.{place.partition}" for place in member.owned)
        topics = "+".join(sorted(member.topics))
        words.append(f"{name}/{member.instance_id or '-'}/{member.generation}/{topics}/{owned}")
    return " ".join(words)


def read(line: str) -> Assignment:
    found: Assignment = {}
    for word in line.split():
        name, _, places = word.partition("=")
        found[name] = [
            TopicPartition(topic, int(number))
            for topic, _, number in (place.partition(".") for place in places.split("+") if place)
        ]
    return found


def kept(members: dict[str, Member], assignment: Assignment) -> int:
    return sum(len(set(assignment[name]) & set(member.owned)) for name, member in members.items())


def test_they_agree_with_java(tmp_path: Path) -> None:
    need(KAFKA)
    dice = random.Random(16)
    cases = [some_case(dice) for _ in range(600)]
    file = tmp_path / "cases"
    file.write_text("\n".join(map(written, cases)))
    path = jars.classpath(KAFKA)
    lines = run_java("AssignorPeer", str(file), classpath=f"{compile_java(SOURCE, path)}:{path}").splitlines()
    assert len(lines) == len(cases)
    for case, line in zip(cases, lines, strict=True):
        strategy, counts, members = case
        ours, theirs = ASSIGNORS[strategy](members, counts), read(line)
        if strategy != "cooperative-sticky":
            assert ours == theirs, written(case)
            continue
        assert kept(members, ours) >= kept(members, theirs), written(case)
        assert sum(map(len, ours.values())) >= sum(map(len, theirs.values())), written(case)
