"""Dynamic settings: which value counts, where it comes from, what is refused, which listeners are called."""

from __future__ import annotations

import logging

import pytest

from ixion.config.broker import BrokerConfig
from ixion.config.dynamic import DynamicConfig, Level, Source
from ixion.config.errors import InvalidSettingError
from ixion.config.log_settings import LOG_RETENTION_MS, LOG_SEGMENT_BYTES
from ixion.config.network_settings import NUM_IO_THREADS
from ixion.config.setting import text_of
from ixion.config.table import BROKER_SETTINGS
from ixion.config.topic import TopicConfig, check_topic_settings

ALL, THIS = Level.ALL_BROKERS, Level.THIS_BROKER


def chain(config: DynamicConfig, name: str) -> list[tuple[str, str | None, str]]:
    return [(synonym.name, synonym.value, synonym.source.name) for synonym in config.describe(name).synonyms]


def test_the_nearer_wins_and_all_are_shown() -> None:
    config = DynamicConfig({"num.io.threads": "4"})
    assert config.current[NUM_IO_THREADS] == 4
    config.change(ALL, {"num.io.threads": "5"})
    assert config.current[NUM_IO_THREADS] == 5
    config.change(THIS, {"num.io.threads": "6"})
    assert config.current[NUM_IO_THREADS] == 6
    described = config.describe("num.io.threads")
    assert (described.value, described.source, described.read_only) == ("6", Source.DYNAMIC_BROKER, False)
    name = "num.io.threads"
    expected = [
        (name, "6", "DYNAMIC_BROKER"),
        (name, "5", "DYNAMIC_DEFAULT"),
        (name, "4", "STATIC"),
        (name, "8", "DEFAULT"),
    ]
    assert chain(config, name) == expected
    config.change(THIS, {})
    assert config.current[NUM_IO_THREADS] == 5


def test_synonyms_as_apache_kafka_shows_them() -> None:
    """Taken from a broker of 3.9.1 with these very settings."""
    config = DynamicConfig({"log.retention.hours": "24", "log.roll.hours": "5", "log.dirs": "/d"})
    config.change(ALL, {"log.retention.ms": "1000"})
    assert chain(config, "log.retention.ms") == [
        ("log.retention.ms", "1000", "DYNAMIC_DEFAULT"),
        ("log.retention.hours", "24", "STATIC"),
        ("log.retention.hours", "168", "DEFAULT"),
    ]
    hours = config.describe("log.retention.hours")
    assert (hours.value, hours.source, hours.read_only) == ("168", Source.STATIC, True)
    roll = config.describe("log.roll.ms")
    assert (roll.value, roll.source, roll.synonyms) == (None, Source.DEFAULT, ())
    assert config.describe("log.roll.hours").value == "5"
    assert chain(config, "log.dirs") == [("log.dirs", "/d", "STATIC")]
    assert config.describe("log.cleaner.io.max.bytes.per.second").value == "1.7976931348623157E308"
    assert config.describe("advertised.listeners").synonyms == ()


def test_a_topic_in_front_of_its_broker() -> None:
    config = DynamicConfig({"log.segment.bytes": "1000"})
    config.change(ALL, {"log.segment.bytes": "2000"})
    own = config.describe_topic("segment.bytes", {"segment.bytes": "3000"})
    assert (own.value, own.source) == ("3000", Source.TOPIC)
    assert [(synonym.name, synonym.value) for synonym in own.synonyms] == [
        ("segment.bytes", "3000"),
        ("log.segment.bytes", "2000"),
        ("log.segment.bytes", "1000"),
        ("log.segment.bytes", "1073741824"),
    ]
    inherited = config.describe_topic("segment.bytes", {})
    assert (inherited.value, inherited.source) == ("2000", Source.DYNAMIC_DEFAULT)
    never_set = config.describe_topic("retention.ms", {})
    assert (never_set.value, never_set.source) == ("604800000", Source.DEFAULT)


def test_topic_values() -> None:
    broker = BrokerConfig({"log.retention.hours": "1"})
    topic = TopicConfig(broker, {"segment.bytes": "14"})
    assert topic[LOG_SEGMENT_BYTES] == 14
    assert topic[LOG_RETENTION_MS] == 3_600_000
    for refused, message in (
        ({"segment.bytes": "13"}, "segment.bytes is '13', but must be a whole number of 32 bits, at least 14"),
        ({"segment.ms": "0"}, "segment.ms is '0', but must be a whole number of 64 bits, at least 1"),
        ({"segment.byte": "14"}, "unknown topic setting 'segment.byte'; did you mean 'segment.bytes'"),
        ({"num.io.threads": "14"}, "unknown topic setting 'num.io.threads'$"),
        ({"retention.m": "3"}, r"^unknown topic setting 'retention.m'; did you mean 'retention.ms'\?$"),
    ):
        with pytest.raises(InvalidSettingError, match=message):
            TopicConfig(broker, refused)


@pytest.mark.parametrize("given", [{"max.compaction.lag.ms": "1"}, {"min.compaction.lag.ms": "6"}])
def test_compaction_lags_of_a_topic_are_checked_together_with_those_of_the_broker(given: dict[str, str]) -> None:
    broker = BrokerConfig({"log.cleaner.min.compaction.lag.ms": "2", "log.cleaner.max.compaction.lag.ms": "5"})
    with pytest.raises(InvalidSettingError, match=r"^min.compaction.lag.ms is .*max.compaction.lag.ms \(\d\) or less"):
        check_topic_settings(broker, given)
    check_topic_settings(broker, {"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "7"})
    TopicConfig(broker, given)  # what is stored can be read, whatever the broker's settings are by now


@pytest.mark.parametrize(
    ("level", "wanted", "message"),
    [
        (THIS, {"num.io.threads": "7", "log.dirs": "/x"}, "log.dirs .* left as it is while the broker runs"),
        (ALL, {"num.io.threads": "7", "ssl.keystore.type": "PEM"}, "ssl.keystore.type .* for one broker, not for all"),
        (ALL, {"num.io.threads": "7", "log.segment.bytes": "1"}, "log.segment.bytes is '1', .* at least 14"),
    ],
)
def test_a_change_is_taken_whole_or_not_at_all(level: Level, wanted: dict[str, str], message: str) -> None:
    config = DynamicConfig({})
    told: list[int] = []
    config.listen(lambda before, after: told.append(1))
    before = config.current
    with pytest.raises(InvalidSettingError, match=message):
        config.change(level, wanted)
    assert config.current is before
    assert config.overlay(level) == {}
    assert told == []


def test_stored_settings_are_taken_without_the_invalid_ones() -> None:
    config = DynamicConfig({})
    stored = {"log.dirs": "/x", "num.io.threads": "7", "log.segment.bytes": "many"}
    refused = config.restore(THIS, stored)
    assert [error.name for error in refused] == ["log.dirs", "log.segment.bytes"]
    assert config.overlay(THIS) == {"num.io.threads": "7"}
    assert config.current[NUM_IO_THREADS] == 7


def test_stored_settings_that_need_each_other_come_in_any_order() -> None:
    stored = {"log.cleaner.threads": "200", "log.cleaner.dedupe.buffer.size": "999999999"}
    for order in (list(stored), list(reversed(stored))):
        config = DynamicConfig({})
        assert config.restore(ALL, {name: stored[name] for name in order}) == []
        assert config.overlay(ALL) == stored


def test_stored_settings_that_break_a_rule_elsewhere_are_left_out() -> None:
    config = DynamicConfig({})
    refused = config.restore(ALL, {"log.cleaner.threads": "200", "num.io.threads": "9"})
    assert [error.name for error in refused] == ["log.cleaner.dedupe.buffer.size"]
    assert config.overlay(ALL) == {}
    config.restore(THIS, {"log.cleaner.dedupe.buffer.size": "999999999"})
    config.change(ALL, {"log.cleaner.threads": "200"})
    assert [error.name for error in config.restore(THIS, {})] == ["log.cleaner.dedupe.buffer.size"]
    assert config.overlay(THIS) == {"log.cleaner.dedupe.buffer.size": "999999999"}


def test_a_listener_that_fails_does_not_keep_the_others_from_following(caplog: pytest.LogCaptureFixture) -> None:
    config = DynamicConfig({})
    told: list[int] = []

    def fail(before: BrokerConfig, after: BrokerConfig) -> None:
        raise RuntimeError("on purpose")

    config.listen(fail)
    config.listen(lambda before, after: told.append(after[NUM_IO_THREADS]))
    config.change(ALL, {"num.io.threads": "9"})
    assert told == [9]
    assert "failed to apply a change of settings" in caplog.text


def test_listeners_may_refuse_and_are_called_in_order() -> None:
    config = DynamicConfig({})
    told: list[tuple[str, int, int]] = []

    def at_most_twice(before: BrokerConfig, after: BrokerConfig) -> None:
        if after[NUM_IO_THREADS] > 2 * before[NUM_IO_THREADS]:
            raise InvalidSettingError("num.io.threads", str(after[NUM_IO_THREADS]), "at most twice as many as before")

    config.listen(
        lambda before, after: told.append(("first", before[NUM_IO_THREADS], after[NUM_IO_THREADS])), at_most_twice
    )
    config.listen(lambda before, after: told.append(("second", before[NUM_IO_THREADS], after[NUM_IO_THREADS])))
    with pytest.raises(InvalidSettingError, match="at most twice"):
        config.change(ALL, {"num.io.threads": "17"})
    assert told == []
    config.change(ALL, {"num.io.threads": "16"})
    assert told == [("first", 8, 16), ("second", 8, 16)]


def test_unknown_names_are_kept_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    config = DynamicConfig({})
    with caplog.at_level(logging.WARNING):
        config.change(ALL, {"num.io.thread": "7"})
        config.change(ALL, {"num.io.thread": "7", "num.io.threads": "9"})
    assert config.overlay(ALL) == {"num.io.thread": "7", "num.io.threads": "9"}
    expected = ["unknown setting num.io.thread; did you mean 'num.io.threads'?"]
    assert [record.getMessage() for record in caplog.records] == expected


def test_min_insync_replicas_is_shown_as_set_for_all_brokers() -> None:
    """As Apache Kafka 4.3.0 describes it, of a topic, of a broker and of all brokers."""
    set_for_all = [("min.insync.replicas", "1", Source.DYNAMIC_DEFAULT), ("min.insync.replicas", "1", Source.DEFAULT)]
    config = DynamicConfig({})
    for described in (config.describe("min.insync.replicas"), config.describe_topic("min.insync.replicas", {})):
        assert (described.value, described.source) == ("1", Source.DYNAMIC_DEFAULT)
        assert [(each.name, each.value, each.source) for each in described.synonyms] == set_for_all
    assert config.shown(Level.ALL_BROKERS) == {"min.insync.replicas": "1"}
    assert config.shown(Level.THIS_BROKER) == {}
    assert config.overlay(Level.ALL_BROKERS) == {}
    config = DynamicConfig({"min.insync.replicas": "2"})
    config.change(Level.ALL_BROKERS, {"min.insync.replicas": "3"})
    own = config.describe_topic("min.insync.replicas", {"min.insync.replicas": "4"})
    assert [each.value for each in own.synonyms] == ["4", "3", "2", "1"]


def test_exactly_what_is_described_as_changeable_can_be_changed() -> None:
    config = DynamicConfig({})
    wrong = []
    for name, setting in BROKER_SETTINGS.items():
        value = text_of(setting.default)
        try:
            config.validate(Level.THIS_BROKER, {name: "" if value is None else value})
            refused = False
        except InvalidSettingError as error:
            refused = "left as it is while the broker runs" in str(error)
        if config.describe(name).read_only != refused:
            wrong.append(name)
    assert wrong == []
