"""The settings that the logs of a topic share."""

from __future__ import annotations

from dataclasses import asdict

from ixion.broker.replica.log_settings import MOST_KNOWN, LogConfigs, log_config
from ixion.config.broker import BrokerConfig

BROKER = BrokerConfig({})


def test_partitions_of_a_topic_share_their_settings_until_these_change() -> None:
    configs = LogConfigs()
    given = {"retention.ms": "1000"}
    first = configs.of(BROKER, given, "t")
    assert asdict(first) == asdict(log_config(BROKER, given, "t"))
    assert configs.of(BROKER, {"retention.ms": "1000"}, "t") is first
    assert configs.of(BROKER, {}, "u").retention_ms != 1000
    given["retention.ms"] = "2000"  # in place
    assert configs.of(BROKER, given, "t").retention_ms == 2000
    other = BrokerConfig({"log.segment.bytes": str(1 << 20)})
    assert configs.of(other, given, "t").segment_bytes == 1 << 20
    assert configs.of(other, given, "t").retention_ms == 2000


def test_topics_that_are_gone_are_forgotten() -> None:
    configs = LogConfigs()
    first = configs.of(BROKER, {}, "t")
    for number in range(MOST_KNOWN):
        configs.of(BROKER, {}, f"other-{number}")
    assert configs.of(BROKER, {}, "t") is not first
