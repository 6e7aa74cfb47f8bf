"""The log's own typed settings and the tables here say the same."""

from __future__ import annotations

import dataclasses

import pytest

from ixion.broker.log.config import LogConfig
from ixion.broker.replica.log_settings import log_config
from ixion.config.broker import BrokerConfig
from ixion.config.log_settings import PRODUCER_ID_EXPIRATION_MS
from ixion.config.topic import TOPIC_SETTINGS


def test_defaults_of_a_log_are_those_of_a_topic() -> None:
    defaults = LogConfig()
    for field in dataclasses.fields(LogConfig):
        if field.name == "producer_id_expiration_ms":
            expected: object = BrokerConfig({})[PRODUCER_ID_EXPIRATION_MS]
        else:
            expected = TOPIC_SETTINGS[field.name.replace("_", ".")].default
        found = getattr(defaults, field.name)
        assert (tuple(sorted(found)) if isinstance(found, frozenset) else found) == expected, field.name


@pytest.mark.parametrize(
    "stored",
    [{"retention.ms": "for ever"}, {"retention.bytes": "much"}, {"cleanup.policy": "shred", "retention.ms": "1"}],
)
def test_records_are_kept_if_it_cannot_be_read_for_how_long(stored: dict[str, str]) -> None:
    config = log_config(BrokerConfig({}), {**stored, "max.message.bytes": "77"})
    assert (config.retention_ms, config.retention_bytes, config.max_message_bytes) == (-1, -1, 77)
