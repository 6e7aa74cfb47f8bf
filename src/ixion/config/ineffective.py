"""The one list of settings that are accepted, stored and described, but have no effect yet.

We accept them because files for Apache Kafka contain them, and tools set throttles around a reassignment. But a user
must not rely on a limit without effect: a value other than the default logs a warning, at the start and at a change. A
test fails for a setting that no code reads and that is not listed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ixion.config.setting import Setting
from ixion.config.table import BROKER_SETTINGS
from ixion.config.topic import OWN, TOPIC_SETTINGS

_ZOOKEEPER: Final = "our ZooKeeper client does not need it"
_QUOTAS: Final = "moves between log directories are not throttled"
_SYSTEM: Final = "the system chooses the size"
_REMOTE: Final = "there is no remote storage"
_FIXED: Final = "the broker uses a fixed value"

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "request.timeout.ms": _FIXED,
    "socket.connection.setup.timeout.ms": _FIXED,
    "socket.connection.setup.timeout.max.ms": _FIXED,
    "replica.socket.receive.buffer.bytes": _SYSTEM,
    "alter.log.dirs.replication.quota.window.num": _QUOTAS,
    "alter.log.dirs.replication.quota.window.size.seconds": _QUOTAS,
    "zookeeper.max.in.flight.requests": _ZOOKEEPER,
    "zookeeper.clientCnxnSocket": _ZOOKEEPER,
    "socket.send.buffer.bytes": _SYSTEM,
    "socket.receive.buffer.bytes": _SYSTEM,
    "log.preallocate": "segments grow as they are written",
    "log.cleaner.threads": "one thread compacts",
    "log.cleaner.io.buffer.size": _FIXED,
    "producer.id.expiration.check.interval.ms": _FIXED,
    "offsets.load.buffer.size": _FIXED,
    "offsets.topic.compression.codec": "offsets are not compressed",
    "offsets.commit.timeout.ms": _FIXED,
    "offsets.commit.required.acks": "offsets are written with acks=all",
    "transaction.state.log.load.buffer.size": _FIXED,
    "group.share.assignors": "there is one assignor, simple",
    "share.fetch.purgatory.purge.interval.requests": _FIXED,
    "log.local.retention.ms": _REMOTE,
    "log.local.retention.bytes": _REMOTE,
}
_OF_TOPICS: Final[Mapping[str, str]] = {
    BROKER_SETTINGS[name].topic: why
    for name, why in WITHOUT_EFFECT.items()
    if name in BROKER_SETTINGS and BROKER_SETTINGS[name].topic
} | {name: why for name, why in WITHOUT_EFFECT.items() if name in OWN}


def broker_settings_without_effect(given: Mapping[str, str]) -> list[str]:
    """`name (reason)` of each that is not set to its default; values must be valid."""
    return _changed(given, BROKER_SETTINGS, WITHOUT_EFFECT)


def topic_settings_without_effect(given: Mapping[str, str]) -> list[str]:
    return _changed(given, TOPIC_SETTINGS, _OF_TOPICS)


def _changed(given: Mapping[str, str], known: Mapping[str, Setting[Any]], reasons: Mapping[str, str]) -> list[str]:
    return [
        f"{name} ({reasons[name]})"
        for name, value in given.items()
        if name in reasons and name in known and known[name].parse(value) != known[name].default
    ]
