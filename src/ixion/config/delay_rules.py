"""delivery.delay.topics: which topics delay records, for tools that cannot set delivery.delay.mode of a topic.

Rules are separated by semicolons; the first one whose pattern matches the whole name of a topic applies. Internal
topics are never delayed. A topic's own settings come first.

    delivery.delay.topics=reminders\\..*:record;.*-retry-5m:fixed:300000
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError
from ixion.config.log_settings import DELIVERY_DELAY_TOPICS
from ixion.config.topic import DELIVERY_DELAY_MODE, DELIVERY_DELAY_MS

ALLOWED = "PATTERN:record or PATTERN:fixed:MILLISECONDS, separated by semicolons"


class Rule(NamedTuple):
    pattern: re.Pattern[str]
    settings: Mapping[str, str]


@lru_cache(4)
def rules_of(text: str) -> tuple[Rule, ...]:
    """InvalidSettingError if a rule is invalid."""
    return tuple(rule_of(each.strip(), text) for each in text.split(";") if each.strip())


def rule_of(rule: str, text: str) -> Rule:
    pattern, _, rest = rule.rpartition(":")
    settings = {DELIVERY_DELAY_MODE.name: "record"}
    if rest != "record":
        pattern, _, mode = pattern.rpartition(":")
        if mode != "fixed" or not rest.isdigit() or int(rest) < 1:
            raise InvalidSettingError(DELIVERY_DELAY_TOPICS.name, text, ALLOWED)
        DELIVERY_DELAY_MS.parse(rest)
        settings = {DELIVERY_DELAY_MODE.name: "fixed", DELIVERY_DELAY_MS.name: rest}
    try:
        return Rule(re.compile(pattern or r"\Z\A."), settings)
    except re.error as error:
        raise InvalidSettingError(DELIVERY_DELAY_TOPICS.name, text, f"{ALLOWED}; {error}") from error


def with_delay(broker: BrokerConfig, topic: str, given: Mapping[str, str]) -> Mapping[str, str]:
    """The settings of a topic, with those of its matching rule."""
    text = broker[DELIVERY_DELAY_TOPICS]
    if not text or DELIVERY_DELAY_MODE.name in given or topic.startswith("__"):
        return given
    for rule in rules_of(text):
        if rule.pattern.fullmatch(topic):
            return {**rule.settings, **given}
    return given
