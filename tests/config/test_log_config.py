"""The log's own typed settings and the tables here say the same."""

from __future__ import annotations

import dataclasses

from ixion.config.broker import BrokerConfig
from ixion.config.log_settings import PRODUCER_ID_EXPIRATION_MS
from ixion.config.topic import TOPIC_SETTINGS
from ixion.log.config import LogConfig


def test_defaults_of_a_log_are_those_of_a_topic() -> None:
    defaults = LogConfig()
    for field in dataclasses.fields(LogConfig):
        if field.name == "producer_id_expiration_ms":
            expected: object = BrokerConfig({})[PRODUCER_ID_EXPIRATION_MS]
        else:
            expected = TOPIC_SETTINGS[field.name.replace("_", ".")].default
        found = getattr(defaults, field.name)
        assert (tuple(sorted(found)) if isinstance(found, frozenset) else found) == expected, field.name
