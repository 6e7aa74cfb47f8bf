"""`ixion consume --group`: real members of real groups, beside each other and beside other clients."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer

from tests.cli.harness import Ixion


def filled(ixion: Ixion, partitions: int, each: int) -> str:
    name = ixion.topic(partitions)
    for partition in range(partitions):
        lines = "".join(f"{partition}-{number}\n" for number in range(each))
        ixion("produce", name, "--partition", str(partition), stdin=lines)
    return name


@contextmanager
def member(topic: str, group: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "ixion", "consume", topic, "--group", group, *options]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def described(ixion: Ixion, group: str) -> tuple[str, int, list[int | None]]:
    found = ixion.json("group", "describe", group)
    return found["state"], len(found["members"]), [row["committed"] for row in found["partitions"]]


def read(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline().strip() for _ in range(count)]


def interrupt(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


def test_it_commits_what_it_printed_and_reads_on_there(ixion: Ixion) -> None:
    topic = filled(ixion, 1, 10)
    group = f"{topic}-group"
    assert ixion("consume", topic, "-g", group, "-n", "4").split() == [f"0-{number}" for number in range(4)]
    assert described(ixion, group) == ("Empty", 0, [4])
    assert ixion("consume", topic, "-g", group, "-n", "1").split() == ["0-4"]
    assert ixion("consume", topic, "-g", group, "-e").split() == [f"0-{number}" for number in range(5, 10)]
    assert ixion("consume", topic, "-g", group, "-e") == ""
    assert described(ixion, group) == ("Empty", 0, [10])


def test_a_place_to_begin_is_for_partitions_without_a_commit(ixion: Ixion) -> None:
    topic = filled(ixion, 1, 10)
    assert ixion("consume", topic, "-g", f"{topic}-a", "-o", "-2", "-e").split() == ["0-8", "0-9"]
    assert ixion("consume", topic, "-g", f"{topic}-a", "-o", "earliest", "-e") == ""
    assert ixion("consume", topic, "-g", f"{topic}-b", "-o", "stored", "-n", "1").split() == ["0-0"]


def test_ctrl_c_commits_and_leaves(ixion: Ixion) -> None:
    topic = filled(ixion, 2, 3)
    group = f"{topic}-group"
    with member(topic, group) as first:
        assert sorted(read(first, 6)) == ["0-0", "0-1", "0-2", "1-0", "1-1", "1-2"]
        interrupt(first)
    assert described(ixion, group) == ("Empty", 0, [3, 3])


def test_two_share_and_one_takes_over(ixion: Ixion) -> None:
    topic = filled(ixion, 2, 1)
    group = f"{topic}-group"
    with member(topic, group) as first:
        assert sorted(read(first, 2)) == ["0-0", "1-0"]
        with member(topic, group) as second:
            while described(ixion, group)[:2] != ("Stable", 2):
                pass
            for partition in ("0", "1"):
                ixion("produce", topic, "--partition", partition, stdin=f"{partition}-1\n")
            assert sorted(read(first, 1) + read(second, 1)) == ["0-1", "1-1"]
            interrupt(second)
        for partition in ("0", "1"):
            ixion("produce", topic, "--partition", partition, stdin=f"{partition}-2\n")
        assert sorted(read(first, 2)) == ["0-2", "1-2"]
        interrupt(first)
    assert described(ixion, group) == ("Empty", 0, [3, 3])


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_beside_another_client(ixion: Ixion, strategy: str) -> None:
    topic = filled(ixion, 2, 1)
    group = f"{topic}-group"
    other = Consumer(
        {
            "bootstrap.servers": ixion.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": strategy,
        }
    )
    try:
        with member(topic, group) as ours:
            assert sorted(read(ours, 2)) == ["0-0", "1-0"]
            other.subscribe([topic])
            while len(other.assignment()) != 1:
                other.poll(0.1)
            (theirs,) = other.assignment()
            for partition in ("0", "1"):
                ixion("produce", topic, "--partition", partition, stdin=f"{partition}-1\n")
            found = None
            while found is None:
                found = other.poll(1)
            assert found.value() == f"{theirs.partition}-1".encode()
            assert read(ours, 1) == [f"{1 - theirs.partition}-1"]
            interrupt(ours)
    finally:
        other.close()


def test_new_partitions_are_found(ixion: Ixion) -> None:
    topic = filled(ixion, 1, 1)
    with member(topic, f"{topic}-group") as only:
        assert read(only, 1) == ["0-0"]
        ixion("topic", "alter", topic, "--partitions", "2")
        ixion("produce", topic, "--partition", "1", stdin="1-0\n")
        assert read(only, 1) == ["1-0"]
        interrupt(only)


def test_what_makes_no_sense_is_refused(ixion: Ixion) -> None:
    topic = ixion.topic()
    assert "leave out --partition" in ixion.refused("consume", topic, "-g", "g", "-p", "0", code=2)
    assert "leave out --until" in ixion.refused("consume", topic, "-g", "g", "--until", "end", code=2)
    assert "name the group with --group" in ixion.refused("consume", topic, "-o", "stored", code=2)
    assert "there is no topic 'nothing'" in ixion.refused("consume", "nothing", "-g", "g")
