"""Kafka 4.3's VerifiableProducer and VerifiableConsumer, which tell all that happens to them, in one JVM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from devtools.jvm import compile_java, java_command
from devtools.parts import need
from ixion.testing import Broker

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="a JVM takes seconds: once is enough, compiled"
)

SOURCE = Path(__file__).parent / "java" / "Verifiables.java"
PROTOCOLS = ("classic", "consumer")
COUNT = 600
SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.min.session.timeout.ms": 500,
}
Event = dict[str, Any]


def events(file: Path) -> list[Event]:
    """What a tool has said so far; a line that is being written does not count yet."""
    return [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]


def named(name: str, told: list[Event]) -> list[Event]:
    return [event for event in told if event["name"] == name]


def consumed(told: list[Event]) -> dict[int, list[int]]:
    """partition -> offsets, in the order in which they came."""
    offsets: dict[int, list[int]] = {}
    for event in named("records_consumed", told):
        for part in event["partitions"]:
            offsets.setdefault(part["partition"], []).extend(range(part["minOffset"], part["maxOffset"] + 1))
    return offsets


def held(file: Path) -> set[int]:
    """The partitions that a consumer has been given and has not given back."""
    now: set[int] = set()
    for event in events(file) if file.exists() else ():
        if event["name"] == "partitions_assigned":
            now |= {part["partition"] for part in event["partitions"]}
        elif event["name"] == "partitions_revoked":
            now -= {part["partition"] for part in event["partitions"]}
    return now


def until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, "the tools have ended"
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def join_and_leave(broker: Broker, group: str, file: Path, process: subprocess.Popen[bytes]) -> None:
    """Another member takes its share, commits nothing and goes; the tool sees it."""
    until(lambda: len(held(file)) == 4, process)
    settings: dict[str, Any] = {"bootstrap.servers": broker.bootstrap, "group.id": group, "enable.auto.commit": False}
    if group == "consumer":
        settings["group.protocol"] = "consumer"
    partner = Consumer(settings)
    partner.subscribe(["t"])

    def shared() -> bool:
        partner.poll(0.05)
        return len(partner.assignment()) == len(held(file)) == 2

    until(shared, process)
    partner.close()
    until(lambda: len(held(file)) == 4, process)


def test_what_is_acknowledged_is_consumed_through_rebalances(tmp_path: Path) -> None:
    jars = need("kafka-4.3.0")
    classes = compile_java(SOURCE, jars)
    files = {name: tmp_path / name for name in (*PROTOCOLS, "producer")}
    with Broker(SETTINGS) as broker:
        broker.create_topic("t", 4)
        to = ("--bootstrap-server", broker.bootstrap, "--topic", "t")
        tools: list[tuple[str, ...]] = [
            ("VerifiableConsumer", str(files[name]), *to, "--group-id", name, "--group-protocol", name)
            for name in PROTOCOLS
        ]
        load = ("--max-messages", str(COUNT), "--throughput", "200", "--acks", "-1", "--repeating-keys", "20")
        tools.append(("VerifiableProducer", str(files["producer"]), *to, *load))
        command = java_command(
            "Verifiables",
            *("\t".join(tool) for tool in tools),
            classpath=f"{classes}:{jars}",
            options=["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
        )
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            for name in PROTOCOLS:
                join_and_leave(broker, name, files[name], process)
            until(lambda: len(named("producer_send_success", events(files["producer"]))) == COUNT, process)
            acked: dict[int, list[int]] = {}
            for event in named("producer_send_success", events(files["producer"])):
                acked.setdefault(event["partition"], []).append(event["offset"])
            until(lambda: all(consumed(events(files[name])) == acked for name in PROTOCOLS), process)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 128 + signal.SIGTERM
        finally:
            process.kill()
            process.wait()
    for name in PROTOCOLS:
        told = events(files[name])
        assert told[0]["name"] == "startup_complete"
        assert told[-1]["name"] == "shutdown_complete"
        assert all(event["success"] for event in named("offsets_committed", told))
    (summary,) = named("tool_data", events(files["producer"]))
    assert (summary["sent"], summary["acked"]) == (COUNT, COUNT)
