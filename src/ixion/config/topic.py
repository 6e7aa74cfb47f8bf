"""Settings of one topic, which override those of the broker.

A topic setting has the type, limits and default of its broker setting: segment.bytes those of log.segment.bytes.
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
from ixion.language.model.delay_names import is_sibling
from ixion.language.model.topic_name import is_topic_name

logger = logging.getLogger(__name__)

T = TypeVar("T")

BEHIND: Final[dict[str, Setting[Any]]] = {
    setting.topic: setting for setting in BROKER_SETTINGS.values() if setting.topic
}
_DEFAULTS: Final = BrokerConfig({})
KEEP_ALL: Final = {"retention.ms": "-1", "retention.bytes": "-1"}  # if the retention of a topic cannot be read
# These have no broker setting. Tools set the first two around a reassignment; the third exists only for descriptions of
# topics, and must be false.
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
    doc="fixed: records are delivered after delivery.delay.ms; record: the headers of each record set its delay",
)
DELIVERY_DELAY_MS: Final = long(
    "delivery.delay.ms", 0, least=0, most=366 * 24 * 60 * 60 * 1000, doc="time from append to delivery in mode fixed"
)
DELIVERY_DELAY_MAX_MS: Final = long(
    "delivery.delay.max.ms",
    366 * 24 * 60 * 60 * 1000,
    least=0,
    doc="longest delay that a record may ask for in mode record",
)
DELIVERY_DELAY_PENDING_MAX: Final = long(
    "delivery.delay.pending.max", 10_000_000, least=0, doc="most delayed records of a partition in mode record"
)
DELIVERY_DELAY_PENDING_BYTES_MAX: Final = long(
    "delivery.delay.pending.bytes.max",
    64 << 30,
    least=0,
    doc="most bytes of delayed records of a partition in mode record",
)
DELIVERY_DELAY_RELEASE_RATE_MAX: Final = long(
    "delivery.delay.release.rate.max",
    0,
    least=0,
    doc="most records per second delivered to a partition in mode record; 0: no limit",
)
DELIVERY_DELAY_TARGET: Final = string(
    "delivery.delay.target",
    "",
    doc="topic to which delayed records are delivered, at the same partition, in mode record; default: their own topic",
)
DEAD_LETTERS: Final = flag(
    "errors.deadletterqueue.group.enable", False, doc="whether share groups may write their dead letters to the topic"
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
        DEAD_LETTERS,
    )
}


def _of_topic(name: str, behind: Setting[Any]) -> Setting[Any]:
    own = replace(behind, name=name, default=_DEFAULTS[behind], topic="", topic_least=None, fallbacks=())
    return own if behind.topic_least is None else replace(own, least=behind.topic_least, also=None)


TOPIC_SETTINGS: Final[dict[str, Setting[Any]]] = {name: _of_topic(name, each) for name, each in BEHIND.items()} | OWN
_THROTTLED: Final = re.compile(r"[0-9]+:[0-9]+")


def parse_topic(given: Mapping[str, str]) -> dict[str, Any]:
    """Typed values by name. Unlike for a broker, unknown names are errors."""
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
    """Values are read with broker settings as keys: `topic[LOG_SEGMENT_BYTES]` is segment.bytes, or the broker's."""

    __slots__ = ("_broker", "_own")

    def __init__(self, broker: BrokerConfig, given: Mapping[str, str]) -> None:
        self._broker = broker
        self._own = parse_topic(given)

    @classmethod
    def stored(cls, broker: BrokerConfig, given: Mapping[str, str]) -> TopicConfig:
        """From the metadata. Invalid settings are logged and ignored: Apache Kafka has topic settings that we do not
        have, and one of them must not keep a broker from opening its logs."""
        taken = dict(given)
        while True:
            try:
                return cls(broker, taken)
            except InvalidSettingError as error:
                warn_once(f"ignoring a topic setting in the metadata: {error}")
                if taken.pop(error.name, None) is None:
                    taken.clear()
                if error.name in ("retention.ms", "retention.bytes", "cleanup.policy"):
                    taken.pop("cleanup.policy", None)
                    taken |= KEEP_ALL

    def own(self, setting: Setting[T]) -> T:
        """The value of a setting that only topics have."""
        return cast(T, self._own.get(setting.name, setting.default))

    def __getitem__(self, setting: Setting[T]) -> T:
        if setting.topic in self._own:
            return cast(T, self._own[setting.topic])
        return self._broker[setting]


def check_topic_settings(broker: BrokerConfig, given: Mapping[str, str]) -> None:
    """InvalidSettingError for invalid settings of a topic, together with the broker's settings for the others."""
    topic = TopicConfig(broker, given)
    shortest, longest = topic[LOG_CLEANER_MIN_COMPACTION_LAG_MS], topic[LOG_CLEANER_MAX_COMPACTION_LAG_MS]
    if shortest > longest:
        raise InvalidSettingError("min.compaction.lag.ms", str(shortest), f"max.compaction.lag.ms ({longest}) or less")
    retention_ms, delay_ms = topic[LOG_RETENTION_MS], topic.own(DELIVERY_DELAY_MS)
    expires = "delete" in topic[LOG_CLEANUP_POLICY] and retention_ms >= 0
    if topic.own(DELIVERY_DELAY_MODE) == "fixed" and expires and retention_ms <= delay_ms:
        allowed = f"less than retention.ms ({retention_ms}), or records would be deleted before they are delivered"
        raise InvalidSettingError(DELIVERY_DELAY_MS.name, str(delay_ms), allowed)
