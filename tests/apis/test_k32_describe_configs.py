"""What is compared with numbers and names here is what Apache Kafka 4.3.0 answered."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from ixion.config.dynamic import Source
from ixion.config.setting import Kind
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions
from tests.apis.settings import BROKER, LOGGER, TOPIC, look, must_set, setting


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    given = {"broker.id": 5, "log.retention.hours": 24, "compression.type": "lz4"}
    with Broker(given) as running:
        running.create_topic("plain")
        running.create_topic("own", retention_ms=1000)
        yield running


def test_topics_in_every_version(asking: Asking) -> None:
    for version in versions(ApiKey.DESCRIBE_CONFIGS):
        result = look(asking, TOPIC, "own", version=version)
        found = {each.name: each for each in result.configs}
        assert (result.error_code, result.error_message) == (ErrorCode.NONE, "")
        assert found["retention.ms"].value == "1000"
        assert found["retention.ms"].config_source == Source.TOPIC
        assert found["retention.ms"].config_type == (Kind.LONG if version >= 3 else 0)
        assert found["cleanup.policy"].value == "delete"
        assert not any(each.read_only for each in result.configs)


def test_synonyms_go_from_the_topic_outwards(asking: Asking) -> None:
    must_set(asking, BROKER, "", {"log.retention.ms": "5000"})
    must_set(asking, BROKER, "5", {"log.retention.ms": "6000"})
    own, plain = (setting(asking, TOPIC, name, "retention.ms") for name in ("own", "plain"))
    behind = [
        ("log.retention.ms", "6000", Source.DYNAMIC_BROKER),
        ("log.retention.ms", "5000", Source.DYNAMIC_DEFAULT),
        ("log.retention.hours", "24", Source.STATIC),
        ("log.retention.hours", "168", Source.DEFAULT),
    ]
    told = [(each.name, each.value, each.source) for each in own.synonyms]
    assert told == [("retention.ms", "1000", Source.TOPIC), *behind]
    assert [(each.name, each.value, each.source) for each in plain.synonyms] == behind
    assert (plain.value, plain.config_source) == ("6000", Source.DYNAMIC_BROKER)
    (quiet,) = look(asking, TOPIC, "own", "retention.ms", synonyms=False).configs
    assert quiet.synonyms == ()


def test_all_of_a_broker(asking: Asking) -> None:
    found = {each.name: each for each in look(asking, BROKER, "5", doc=True).configs}
    assert len(found) > 100
    assert (found["broker.id"].value, found["broker.id"].read_only) == ("5", True)
    assert found["broker.id"].config_source == Source.STATIC
    assert (found["num.io.threads"].value, found["num.io.threads"].read_only) == ("8", False)
    assert found["num.io.threads"].config_type == Kind.INT
    assert "request handlers" in (found["num.io.threads"].documentation or "")
    assert found["compression.type"].config_source == Source.STATIC
    secret = found["delegation.token.secret.key"]
    assert (secret.value, secret.is_sensitive, secret.config_type) == (None, True, Kind.PASSWORD)


def test_values_of_unknown_names_are_hidden(asking: Asking) -> None:
    must_set(asking, BROKER, "5", {"some.plugin.password": "x"})
    unknown = setting(asking, BROKER, "5", "some.plugin.password")
    assert (unknown.value, unknown.is_sensitive, unknown.read_only) == (None, True, True)
    assert (unknown.config_type, unknown.config_source) == (0, Source.DYNAMIC_BROKER)
    assert [(each.value, each.source) for each in unknown.synonyms] == [(None, Source.DYNAMIC_BROKER)]


def test_the_empty_name_stands_for_all_brokers(asking: Asking) -> None:
    must_set(asking, BROKER, "", {"message.max.bytes": "2000000", "unheard.of": "1"})
    must_set(asking, BROKER, "5", {"message.max.bytes": "3000000"})
    found = {each.name: each for each in look(asking, BROKER, "").configs}
    assert {"message.max.bytes", "unheard.of"} <= found.keys()
    largest = found["message.max.bytes"]
    assert (largest.value, largest.config_source) == ("2000000", Source.DYNAMIC_DEFAULT)
    assert [(each.value, each.source) for each in largest.synonyms] == [("2000000", Source.DYNAMIC_DEFAULT)]
    assert found["unheard.of"].value is None
    assert setting(asking, BROKER, "5", "message.max.bytes").value == "3000000"


def test_keys_choose_and_unknown_ones_choose_nothing(asking: Asking) -> None:
    chosen = look(asking, TOPIC, "own", "segment.ms", "retention.ms", "no.such").configs
    assert {each.name for each in chosen} == {"segment.ms", "retention.ms"}
    assert look(asking, TOPIC, "own", "no.such").configs == ()


def test_documentation_only_where_asked_for(asking: Asking) -> None:
    (silent,) = look(asking, TOPIC, "own", "segment.ms").configs
    (spoken,) = look(asking, TOPIC, "own", "segment.ms", doc=True).configs
    assert silent.documentation is None
    assert "segment" in (spoken.documentation or "")


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "6", ErrorCode.INVALID_REQUEST),
        (BROKER, "five", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "6", ErrorCode.INVALID_REQUEST),
        (99, "what", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_not_here(asking: Asking, kind: int, name: str, code: ErrorCode) -> None:
    result = look(asking, kind, name)
    assert (result.error_code, result.configs) == (code, ())
    assert result.error_message


def test_loggers_have_kafkas_levels(asking: Asking) -> None:
    logging.getLogger("ixion.test.loud").setLevel(logging.ERROR)
    logging.getLogger("ixion.test.loud.child")
    levels = {each.name: (each.value, each.config_source) for each in look(asking, LOGGER, "5").configs}
    assert levels["ixion.test.loud"] == levels["ixion.test.loud.child"] == ("ERROR", Source.LOGGER)
    assert "root" in levels
