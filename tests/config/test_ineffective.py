"""No setting is ignored without a word: it is read somewhere, or it is listed and warned about."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from ixion.config import (
    cluster_settings,
    group_settings,
    log_settings,
    network_settings,
    quota_settings,
    replica_settings,
    security_settings,
    share_settings,
    streams_settings,
    topic,
    transaction_settings,
    web_settings,
)
from ixion.config.dynamic import DynamicConfig, Level
from ixion.config.ineffective import WITHOUT_EFFECT, topic_settings_without_effect
from ixion.config.setting import Setting
from ixion.config.sources import load
from ixion.config.table import BROKER_SETTINGS
from ixion.config.topic import OWN

TABLES = (
    cluster_settings,
    group_settings,
    log_settings,
    network_settings,
    quota_settings,
    replica_settings,
    security_settings,
    share_settings,
    streams_settings,
    transaction_settings,
    web_settings,
)
SOURCE = Path(__file__).parents[2] / "src" / "ixion"
REFUSED = {"remote.storage.enable"}  # anything but the default is an error


def named_settings() -> dict[str, Setting[object]]:
    """By the names of the constants."""
    tables = {name: value for table in TABLES for name, value in vars(table).items() if isinstance(value, Setting)}
    own = {name: value for name, value in vars(topic).items() if isinstance(value, Setting) and value.name in OWN}
    return tables | own


def read_settings() -> set[str]:
    """Those that code other than their table names, and those that stand in for one of these."""
    tables = {f"{table.__name__.rpartition('.')[2]}.py" for table in TABLES} | {"topic.py", "ineffective.py"}
    code = "\n".join(
        path.read_text() for path in SOURCE.rglob("*.py") if not (path.parent.name == "config" and path.name in tables)
    )
    words = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", code))
    read = [setting for name, setting in named_settings().items() if name in words]
    found = set()
    while read:
        setting = read.pop()
        found.add(setting.name)
        read += [other for other, _ in setting.fallbacks]
    return found


def test_every_setting_is_read_or_listed() -> None:
    silent = {*BROKER_SETTINGS, *OWN} - read_settings() - WITHOUT_EFFECT.keys() - REFUSED
    assert silent == set(), "make them work, or list them in ixion.config.ineffective"


def test_each_name_in_the_list_is_a_setting() -> None:
    assert WITHOUT_EFFECT.keys() <= {*BROKER_SETTINGS, *OWN}


def test_a_start_warns_in_one_line() -> None:
    given = [
        "replica.socket.receive.buffer.bytes=4",
        "quota.window.num=11",
        "offsets.load.buffer.size=1",
        "num.partitions=3",
    ]
    (warning,) = load(assignments=given).warnings
    assert "replica.socket.receive.buffer.bytes (the system chooses the size" in warning
    assert "offsets.load.buffer.size" in warning
    assert "quota.window.num" not in warning  # this is its default
    assert "num.partitions" not in warning


def test_a_change_while_it_runs_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    config = DynamicConfig({})
    with caplog.at_level(logging.WARNING):
        config.change(Level.ALL_BROKERS, {"log.cleaner.threads": "4", "unclean.leader.election.enable": "false"})
        config.change(Level.ALL_BROKERS, {"log.cleaner.threads": "4", "log.retention.ms": "1000"})
    (record,) = caplog.records
    assert "log.cleaner.threads" in record.getMessage()
    assert "unclean" not in record.getMessage()


def test_settings_of_topics() -> None:
    given = {"preallocate": "true", "unclean.leader.election.enable": "true"}
    assert [text.partition(" ")[0] for text in topic_settings_without_effect(given)] == ["preallocate"]
    assert topic_settings_without_effect({"preallocate": "false"}) == []
