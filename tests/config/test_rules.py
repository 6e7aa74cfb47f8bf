"""Rules between settings, at the start and for dynamic changes."""

from __future__ import annotations

import pytest

from ixion.config.broker import BrokerConfig
from ixion.config.dynamic import DynamicConfig, Level
from ixion.config.errors import InvalidSettingError
from ixion.config.rules import check_rules, connection_overrides, log_dirs
from ixion.config.sources import load


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"broker.id": "1001"}, r"broker.id is '1001', but must be -1, or 0 to reserved.broker.max.id \(1000\)"),
        ({"broker.id": "-2"}, "broker.id is '-2'"),
        ({"broker.id.generation.enable": "false"}, "broker.id is '-1', but must be 0 or more"),
        ({"log.roll.ms": "0"}, "log.roll.ms is '0' .*at least 1$"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms is '-1'"),
        ({"log.retention.ms": "0"}, "log.retention.ms is '0' .*at least 1, or -1$"),
        ({"log.retention.hours": "0"}, "log.retention.ms is '0'"),
        ({"log.flush.scheduler.interval.ms": "-1"}, "log.flush.interval.ms is '-1', .* at least 0"),
        ({"log.cleaner.dedupe.buffer.size": "2097152", "log.cleaner.threads": "2"}, "1 MiB for each of 2 threads"),
        (
            {"replica.fetch.wait.max.ms": "30001", "replica.lag.time.max.ms": "40000"},
            r"replica.socket.timeout.ms \(30000\)",
        ),
        ({"replica.fetch.wait.max.ms": "600", "replica.lag.time.max.ms": "599"}, r"replica.lag.time.max.ms \(599\)"),
        ({"offsets.commit.required.acks": "4"}, r"-1 to offsets.topic.replication.factor \(3\)"),
        ({"group.consumer.assignors": ""}, "at least one assignor"),
        (
            {"group.consumer.assignment.interval.ms": "15001"},
            r"must be group.consumer.min.assignment.interval.ms \(0\) to "
            r"group.consumer.max.assignment.interval.ms \(15000\)",
        ),
        ({"group.consumer.min.assignment.interval.ms": "1001"}, "group.consumer.assignment.interval.ms is '1000'"),
        (
            {"group.consumer.min.session.timeout.ms": "60001"},
            r"group.consumer.max.session.timeout.ms is '60000', but must be group.consumer.min.session.timeout.ms",
        ),
        ({"group.consumer.heartbeat.interval.ms": "4999"}, r"group.consumer.min.heartbeat.interval.ms \(5000\) to"),
        ({"queued.max.request.bytes": "100"}, r"socket.request.max.bytes \(104857600\) or more, or -1"),
        ({"max.connections.per.ip": "0"}, "more than 0 where"),
        (
            {"max.connections.per.ip.overrides": "host"},
            "max.connections.per.ip.overrides is 'host', but must be host:count",
        ),
        ({"max.connections.per.ip.overrides": "host:many"}, "host:count"),
        ({"log.dirs": "/a,,/b"}, "one or more directories"),
        ({"log.dirs": ""}, "one or more directories"),
        ({"listeners": "nonsense"}, "NAME://host:port"),
    ],
)
def test_settings_that_break_a_rule_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSettingError, match=message):
        load(assignments=[f"{name}={value}" for name, value in given.items()])


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"broker.id": "1000"},
        {"broker.id": "5000", "broker.id.generation.enable": "false"},
        {"log.retention.hours": "-1"},
        {"log.cleaner.dedupe.buffer.size": "1", "log.cleaner.enable": "false"},
        {"queued.max.request.bytes": "104857600"},
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:1"},
    ],
)
def test_settings_within_the_rules_are_accepted(given: dict[str, str]) -> None:
    check_rules(BrokerConfig(given))


def test_dynamic_changes_keep_them_as_well() -> None:
    config = DynamicConfig({})
    with pytest.raises(InvalidSettingError, match="1 MiB for each of 128 threads"):
        config.change(Level.ALL_BROKERS, {"log.cleaner.threads": "128"})
    assert config.overlay(Level.ALL_BROKERS) == {}


def test_the_little_languages() -> None:
    given = {"max.connections.per.ip.overrides": "127.0.0.1:5, host-1:0,[::1]:7", "log.dirs": "/a, /b"}
    config = BrokerConfig(given)
    assert connection_overrides(config) == {"127.0.0.1": 5, "host-1": 0, "::1": 7}
    assert log_dirs(config) == ("/a", "/b")
