"""delivery.delay.topics: which topics delay records without setting it themselves."""

from __future__ import annotations

import pytest

from ixion.config.broker import BrokerConfig
from ixion.config.delay_rules import with_delay
from ixion.config.errors import InvalidSettingError
from ixion.config.rules import check_rules

RULES = BrokerConfig({"delivery.delay.topics": r"later\..*:record; .*-5m:fixed:300000 ;a:b:record"})


@pytest.mark.parametrize(
    ("topic", "given", "expected"),
    [
        ("later.mails", {}, {"delivery.delay.mode": "record"}),
        ("jobs-5m", {}, {"delivery.delay.mode": "fixed", "delivery.delay.ms": "300000"}),
        ("jobs-5m", {"retention.ms": "-1"}, {"delivery.delay.mode": "fixed", "delivery.delay.ms": "300000"}),
        ("a:b", {}, {"delivery.delay.mode": "record"}),
        ("jobs-5m", {"delivery.delay.mode": "off"}, {"delivery.delay.mode": "off"}),
        ("not later.mails", {}, {}),
        ("__consumer-5m", {}, {}),
    ],
)
def test_the_first_pattern_that_matches_counts_unless_the_topic_says_otherwise(
    topic: str, given: dict[str, str], expected: dict[str, str]
) -> None:
    assert dict(with_delay(RULES, topic, given)) == {**given, **expected}


@pytest.mark.parametrize("text", ["x", "x:later", "x:fixed", "x:fixed:0", "x:fixed:soon", "[:record", "x:fixed:-5"])
def test_a_rule_that_cannot_be_read_stops_the_start(text: str) -> None:
    with pytest.raises(InvalidSettingError, match=r"delivery\.delay\.topics"):
        check_rules(BrokerConfig({"delivery.delay.topics": text}))
