"""Topic settings: what can be set for one topic, and the settings of a topic laid over those of its broker.

A topic setting takes kind, limits and default from the broker setting behind it: segment.bytes from log.segment.bytes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError, UnknownSettingError
from ixion.config.log_settings import (
    LOG_CLEANER_MAX_COMPACTION_LAG_MS,
    LOG_CLEANER_MIN_COMPACTION_LAG_MS,
    LOG_CLEANUP_POLICY,
    LOG_RETENTION_MS,
)
from ixion.config.setting import Setting, flag, long, string, words
from ixion.config.table import BROKER_SETTINGS, meant
from ixion.model.delay_names import is_sibling
from ixion.model.topic_name import is_topic_name

logger = logging.getLogger(__name__)

T = TypeVar("T")

BEHIND: Final[dict[str, Setting[Any]]] = {
    setting.topic: setting for setting in BROKER_SETTINGS.values() if setting.topic
}
_DEFAULTS: Final = BrokerConfig({})
KEEP_ALL: Final = {"retention.ms": "-1", "retention.bytes": "-1"}  # where it cannot be read how long to keep records
# Set for topics only, with no setting of the broker behind them. Tools set the first two around a reassignment; the
# third is there for descriptions of topics, and must be false.
THROTTLED_LEADERS: Final = words(
    "leader.replication.throttled.replicas", (), doc="replicas whose leaders are throttled, partition:broker or *"
)
THROTTLED_FOLLOWERS: Final = words(
    "follower.replication.throttled.replicas", (), doc="replicas that are throttled themselves, partition:broker or *"
)
REMOTE_STORAGE_ENABLE: Final = flag("remote.storage.enable", False, doc="whether segments are moved to remote storage")
# Delayed delivery, which Kafka does not have.
DELIVERY_DELAY_MODE: Final = string(
    "delivery.delay.mode",
    "off",
    choices=("off", "fixed", "record"),
    doc="fixed: consumers see each record delivery.delay.ms late; record: as late as its headers ask",
)
DELIVERY_DELAY_MS: Final = long(
    "delivery.delay.ms", 0, least=0, most=366 * 24 * 60 * 60 * 1000, doc="time from append to delivery in mode fixed"
)
DELIVERY_DELAY_MAX_MS: Final = long(
    "delivery.delay.max.ms",
    366 * 24 * 60 * 60 * 1000,
    least=0,
    doc="how late a record may ask to be delivered in mode record",
)
DELIVERY_DELAY_PENDING_MAX: Final = long(
    "delivery.delay.pending.max", 10_000_000, least=0, doc="records of a partition that may wait in mode record"
)
DELIVERY_DELAY_PENDING_BYTES_MAX: Final = long(
    "delivery.delay.pending.bytes.max",
    64 << 30,
    least=0,
    doc="bytes of a partition that may wait in mode record",
)
DELIVERY_DELAY_RELEASE_RATE_MAX: Final = long(
    "delivery.delay.release.rate.max",
    0,
    least=0,
    doc="records of a partition delivered a second in mode record; 0 means no limit",
)
DELIVERY_DELAY_TARGET: Final = string(
    "delivery.delay.target",
    "",
    doc="a schedule topic, in mode record: records stay in it, and are delivered to the same partition of that topic",
)
OWN: Final[dict[str, Setting[Any]]] = {
    setting.name: setting
    for setting in (
        THROTTLED_LEADERS,
        THROTTLED_FOLLOWERS,
        REMOTE_STORAGE_ENABLE,
        DELIVERY_DELAY_MODE,
        DELIVERY_DELAY_MS,
        DELIVERY_DELAY_MAX_MS,
        DELIVERY_DELAY_PENDING_MAX,
        DELIVERY_DELAY_PENDING_BYTES_MAX,
        DELIVERY_DELAY_RELEASE_RATE_MAX,
        DELIVERY_DELAY_TARGET,
    )
}


def _of_topic(name: str, behind: Setting[Any]) -> Setting[Any]:
    own = replace(behind, name=name, default=_DEFAULTS[behind], topic="", topic_least=None, fallbacks=())
    return own if behind.topic_least is None else replace(own, least=behind.topic_least, also=None)


TOPIC_SETTINGS: Final[dict[str, Setting[Any]]] = {name: _of_topic(name, each) for name, each in BEHIND.items()} | OWN
_THROTTLED: Final = re.compile(r"[0-9]+:[0-9]+")


def parse_topic(given: Mapping[str, str]) -> dict[str, Any]:
    """Typed values by name. Unlike a broker, a topic has no unknown settings."""
    for name, value in given.items():
        if name not in TOPIC_SETTINGS:
            raise UnknownSettingError(name, value, "topic", meant(name, TOPIC_SETTINGS))
    values = {name: TOPIC_SETTINGS[name].parse(value) for name, value in given.items()}
    for setting in (THROTTLED_LEADERS, THROTTLED_FOLLOWERS):
        listed = values.get(setting.name, ())
        if listed != ("*",) and not all(_THROTTLED.fullmatch(each) for each in listed):
            raise InvalidSettingError(setting.name, given[setting.name], "partition:broker with commas, or *")
    if values.get(DELIVERY_DELAY_MODE.name) == "fixed":
        _check_fixed_delay(given, values)
    target = values.get(DELIVERY_DELAY_TARGET.name)
    if target and (not is_topic_name(target) or is_sibling(target)):
        raise InvalidSettingError(DELIVERY_DELAY_TARGET.name, target, "the name of a topic")
    if target and values.get(DELIVERY_DELAY_MODE.name) != "record":
        raise InvalidSettingError(DELIVERY_DELAY_TARGET.name, target, "set together with delivery.delay.mode=record")
    if values.get(REMOTE_STORAGE_ENABLE.name):
        raise InvalidSettingError(REMOTE_STORAGE_ENABLE.name, "true", "false, as there is no remote storage")
    return values


def _check_fixed_delay(given: Mapping[str, str], values: Mapping[str, Any]) -> None:
    if not values.get(DELIVERY_DELAY_MS.name):
        raise InvalidSettingError(
            DELIVERY_DELAY_MODE.name, "fixed", "off, unless delivery.delay.ms is set to 1 or more"
        )
    if values.get("message.timestamp.type") == "CreateTime":
        allowed = "LogAppendTime, from which delivery.delay.mode=fixed counts"
        raise InvalidSettingError("message.timestamp.type", given["message.timestamp.type"], allowed)


@lru_cache(1_000)
def warn_once(text: str) -> None:
    logger.warning(text)


class TopicConfig:
    """Read by the broker settings behind the topic's: `topic[LOG_SEGMENT_BYTES]` is segment.bytes, or the broker's."""

    __slots__ = ("_broker", "_own")

    def __init__(self, broker: BrokerConfig, given: Mapping[str, str]) -> None:
        self._broker = broker
        self._own = parse_topic(given)

    @classmethod
    def stored(cls, broker: BrokerConfig, given: Mapping[str, str]) -> TopicConfig:
        """As the metadata has it. What cannot be read is logged and left out: Apache Kafka has topic settings that we
        do not have, and one of them must not keep a broker from its logs."""
        taken = dict(given)
        while True:
            try:
                return cls(broker, taken)
            except InvalidSettingError as error:
                warn_once(f"a topic setting in the metadata is ignored: {error}")
                if taken.pop(error.name, None) is None:
                    taken.clear()
                if error.name in ("retention.ms", "retention.bytes", "cleanup.policy"):
                    taken.pop("cleanup.policy", None)
                    taken |= KEEP_ALL

    def own(self, setting: Setting[T]) -> T:
        """Of a setting that only topics have."""
        return cast(T, self._own.get(setting.name, setting.default))

    def __getitem__(self, setting: Setting[T]) -> T:
        if setting.topic in self._own:
            return cast(T, self._own[setting.topic])
        return self._broker[setting]


def check_topic_settings(broker: BrokerConfig, given: Mapping[str, str]) -> None:
    """InvalidSettingError for what a topic cannot have, beside the broker's settings for what it does not set."""
    topic = TopicConfig(broker, given)
    shortest, longest = topic[LOG_CLEANER_MIN_COMPACTION_LAG_MS], topic[LOG_CLEANER_MAX_COMPACTION_LAG_MS]
    if shortest > longest:
        raise InvalidSettingError("min.compaction.lag.ms", str(shortest), f"max.compaction.lag.ms ({longest}) or less")
    retention_ms, delay_ms = topic[LOG_RETENTION_MS], topic.own(DELIVERY_DELAY_MS)
    expires = "delete" in topic[LOG_CLEANUP_POLICY] and retention_ms >= 0
    if topic.own(DELIVERY_DELAY_MODE) == "fixed" and expires and retention_ms <= delay_ms:
        allowed = f"less than retention.ms ({retention_ms}), or records would go before they are delivered"
        raise InvalidSettingError(DELIVERY_DELAY_MS.name, str(delay_ms), allowed)
