"""Settings of one share group (KIP-932): those with a setting of the broker behind them, and those without.

`share.redelivery.*` are ours: how long a record that was released waits before it is delivered again. After its n-th
delivery it waits backoff · multiplier^(n-1) ms, at most `max.ms`, less up to `jitter` of it, drawn at random. With a
backoff of 1000 and a multiplier of 2: 1 s, 2 s, 4 s, 8 s. A backoff of 0, the default, redelivers at once, as Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ixion.config import share_settings as settings
from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError
from ixion.config.setting import Kind, Setting, double, flag, integer, string
from ixion.language.model.delay_names import is_sibling
from ixion.language.model.topic_name import is_topic_name

SESSION_TIMEOUT: Final = "share.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "share.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL: Final = "share.assignment.interval.ms"
LOCK_DURATION: Final = "share.record.lock.duration.ms"
DELIVERY_LIMIT: Final = "share.delivery.count.limit"
MAX_LOCKS: Final = "share.partition.max.record.locks"

AUTO_OFFSET_RESET: Final = string(
    "share.auto.offset.reset", "latest", doc="where a share group begins: earliest, latest or by_duration:PnDTnHnMn.nS"
)
ISOLATION_LEVEL: Final = string(
    "share.isolation.level",
    "read_uncommitted",
    choices=("read_committed", "read_uncommitted"),
    doc="whether a share group sees records of open and aborted transactions",
)
RENEW_ENABLE: Final = flag(
    "share.renew.acknowledge.enable", True, doc="whether members may renew the locks of their records"
)
BACKOFF_MS: Final = integer(
    "share.redelivery.backoff.ms", 0, Kind.LONG, least=0, doc="wait before a released record is delivered again"
)
BACKOFF_MAX_MS: Final = integer(
    "share.redelivery.backoff.max.ms", 300_000, Kind.LONG, least=0, doc="longest wait before a redelivery"
)
BACKOFF_MULTIPLIER: Final = double(
    "share.redelivery.backoff.multiplier", 2.0, least=1, most=100, doc="growth of the wait with each delivery"
)
BACKOFF_JITTER: Final = double(
    "share.redelivery.backoff.jitter", 0.2, least=0, most=1, doc="share of the wait that is drawn at random"
)
DEAD_LETTER_TOPIC: Final = string(
    "errors.deadletterqueue.topic.name",
    "",
    doc="topic that gets a dead letter for each record that a share group rejects or cannot process; none if empty",
)
DEAD_LETTER_COPY: Final = flag(
    "errors.deadletterqueue.copy.record.enable",
    False,
    doc="whether a dead letter has key, value and headers of its record",
)
BACKOFF_ON_TIMEOUT: Final = flag(
    "share.redelivery.backoff.on.timeout", False, doc="whether a record waits after its lock has expired, too"
)

# Settings of a group that no setting of the broker stands behind.
OWN: Final[dict[str, Setting[Any]]] = {
    each.name: each
    for each in (
        AUTO_OFFSET_RESET,
        ISOLATION_LEVEL,
        RENEW_ENABLE,
        BACKOFF_MS,
        BACKOFF_MAX_MS,
        BACKOFF_MULTIPLIER,
        BACKOFF_JITTER,
        BACKOFF_ON_TIMEOUT,
        DEAD_LETTER_TOPIC,
        DEAD_LETTER_COPY,
    )
}
DURATION: Final = "by_duration:"
NOTATION: Final = (
    r"(?i)P(?:([0-9]{1,9})D)?"
    r"(?:T(?=[0-9])(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9})(?:\.([0-9]{0,9}))?S)?)?"
)


class Reset(NamedTuple):
    """Where a share group begins to read: at an end of the log, or at the first record younger than a span."""

    earliest: bool = False
    back_ms: int | None = None


def read_reset(text: str) -> Reset:
    """InvalidSettingError if it is none."""
    lowered = text.strip().lower()
    if lowered in ("earliest", "latest"):
        return Reset(lowered == "earliest")
    found = re.fullmatch(NOTATION, text.strip()[len(DURATION) :]) if lowered.startswith(DURATION) else None
    if found is None or not any(found.groups()):
        raise InvalidSettingError(AUTO_OFFSET_RESET.name, text, "earliest, latest or by_duration:PnDTnHnMn.nS")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
    millis = int((found[5] or "").ljust(3, "0")[:3])
    return Reset(back_ms=(((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + millis)


def check_dead_letter_topic(name: str, prefix: str) -> None:
    """InvalidSettingError if no dead letters may go there. Whether the topic agrees is seen at the first letter."""
    if name and (not is_topic_name(name) or name.startswith("__") or is_sibling(name)):
        raise InvalidSettingError(DEAD_LETTER_TOPIC.name, name, "the name of a topic that is not internal")
    if name and not name.startswith(prefix):
        raise InvalidSettingError(DEAD_LETTER_TOPIC.name, name, f"names that begin with {prefix}")


class ShareGroupSettings:
    """The settings of share groups that are in force now."""

    def __init__(self, current: Callable[[], BrokerConfig], of_group: Callable[[str], Mapping[str, str]]) -> None:
        self._current = current
        self._of_group = of_group

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self._within(group_id, HEARTBEAT_INTERVAL)

    def session_timeout_ms(self, group_id: str) -> int:
        return self._within(group_id, SESSION_TIMEOUT)

    def assignment_interval_ms(self, group_id: str) -> int:
        return self._within(group_id, ASSIGNMENT_INTERVAL)

    def lock_duration_ms(self, group_id: str) -> int:
        return self._within(group_id, LOCK_DURATION)

    def delivery_limit(self, group_id: str) -> int:
        return self._within(group_id, DELIVERY_LIMIT)

    def max_locks(self, group_id: str) -> int:
        return self._within(group_id, MAX_LOCKS)

    def reset(self, group_id: str) -> Reset:
        return read_reset(self.own(group_id, AUTO_OFFSET_RESET))

    def is_read_committed(self, group_id: str) -> bool:
        return bool(self.own(group_id, ISOLATION_LEVEL) == "read_committed")

    def own(self, group_id: str, setting: Setting[Any]) -> Any:
        """The value of a setting that no setting of the broker stands behind, such as BACKOFF_MS."""
        given = self._of_group(group_id).get(setting.name)
        return setting.default if given is None else setting.parse(given)

    @property
    def max_size(self) -> int:
        return self._current()[settings.GROUP_SHARE_MAX_SIZE]

    @property
    def max_sessions(self) -> int:
        return self._current()[settings.GROUP_SHARE_MAX_SHARE_SESSIONS]

    def _within(self, group_id: str, name: str) -> int:
        """The group's own value, kept within limits that may have become narrower since; else the broker's."""
        from ixion.config.group import BEHIND_GROUP

        config = self._current()
        default, least, most = BEHIND_GROUP[name]
        given = self._of_group(group_id).get(name)
        return config[default] if given is None else min(max(int(given), config[least]), config[most])
