"""One setting: what it takes, what it refuses, and in which words."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ixion.config import cluster_settings as cluster
from ixion.config import group_settings as group
from ixion.config import log_settings as log
from ixion.config import network_settings as network
from ixion.config.errors import InvalidSettingError
from ixion.config.setting import Setting, text_of
from ixion.config.table import BROKER_SETTINGS

TAKEN: list[tuple[Setting[Any], str, Any]] = [
    (cluster.NUM_PARTITIONS, " 12 ", 12),
    (cluster.NUM_PARTITIONS, "+1", 1),
    (cluster.BROKER_ID, "-1", -1),
    (cluster.DELETE_TOPIC_ENABLE, "False", False),
    (log.LOG_RETENTION_BYTES, "9223372036854775807", (1 << 63) - 1),
    (log.LOG_CLEANER_MIN_CLEANABLE_RATIO, ".25", 0.25),
    (log.LOG_CLEANUP_POLICY, "compact , delete", ("compact", "delete")),
    (log.LOG_CLEANUP_POLICY, "", ()),
    (log.COMPRESSION_GZIP_LEVEL, "-1", -1),
    (log.COMPRESSION_TYPE, "zstd", "zstd"),
    (network.LISTENERS, " A://:1 ", "A://:1"),
]
REFUSED: list[tuple[Setting[Any], str, str]] = [
    (cluster.NUM_PARTITIONS, "many", "a whole number of 32 bits, at least 1"),
    (cluster.NUM_PARTITIONS, "", "a whole number of 32 bits, at least 1"),
    (cluster.NUM_PARTITIONS, "0", "a whole number of 32 bits, at least 1"),
    (cluster.NUM_PARTITIONS, "1_0", "a whole number of 32 bits, at least 1"),
    (cluster.NUM_PARTITIONS, "٣", "a whole number of 32 bits, at least 1"),
    (cluster.NUM_PARTITIONS, "2147483648", "a whole number of 32 bits, at least 1"),
    (group.OFFSETS_TOPIC_REPLICATION_FACTOR, "32768", "a whole number of 16 bits, at least 1"),
    (cluster.DELETE_TOPIC_ENABLE, "yes", "true or false"),
    (log.LOG_CLEANER_MIN_CLEANABLE_RATIO, "1.5", "a number, 0 to 1"),
    (log.LOG_CLEANER_MIN_CLEANABLE_RATIO, "nan", "a number, 0 to 1"),
    (log.LOG_CLEANUP_POLICY, "compact,shred", "a list of compact, delete"),
    (log.COMPRESSION_GZIP_LEVEL, "0", "a whole number of 32 bits, 1 to 9, or -1"),
    (log.LOG_MESSAGE_TIMESTAMP_TYPE, "createtime", "one of CreateTime, LogAppendTime"),
]


@pytest.mark.parametrize(("setting", "text", "value"), TAKEN)
def test_taken(setting: Setting[Any], text: str, value: Any) -> None:
    parsed = setting.parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(("setting", "text", "allowed"), REFUSED)
def test_refused_with_name_value_and_what_is_allowed(setting: Setting[Any], text: str, allowed: str) -> None:
    message = f"{setting.name} is {text!r}, but must be {allowed}"
    with pytest.raises(InvalidSettingError, match=f"^{re.escape(message)}$"):
        setting.parse(text)


@pytest.mark.parametrize("setting", BROKER_SETTINGS.values(), ids=BROKER_SETTINGS)
def test_every_default_is_allowed_and_survives_its_text(setting: Setting[Any]) -> None:
    text = text_of(setting.default)
    assert text is None or setting.parse(text) == setting.default
    assert setting.doc


def test_secrets_are_not_shown() -> None:
    assert cluster.DELEGATION_TOKEN_SECRET_KEY.sensitive
    assert "hunter2" not in str(cluster.DELEGATION_TOKEN_SECRET_KEY.refusal("hunter2"))
