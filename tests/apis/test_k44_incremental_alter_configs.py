"""The codes are those that Apache Kafka 4.3.0 gave to the same requests, but for operations it does not know (-1)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ixion.broker.metadata import paths
from ixion.broker.metadata.config_node import encode_config, read_config
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.config.dynamic import Source
from ixion.language.model.errors import ErrorCode
from ixion.testing.broker import Broker
from tests.apis.asking import Asking
from tests.apis.settings import (
    APPEND,
    BROKER,
    DELETE,
    LOGGER,
    SET,
    SUBTRACT,
    TOPIC,
    Edits,
    change,
    change_all,
    look,
    must_set,
    setting,
)

DONE = (ErrorCode.NONE, None)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"broker.id": 5}) as running:
        for name in ("t", "listed", "checked", "crowd"):
            running.create_topic(name, retention_ms=1000)
        yield running


def test_single_settings_change_and_others_stay(asking: Asking) -> None:
    for version in (0, 1):
        assert change(asking, TOPIC, "t", [("segment.bytes", SET, "1048576")], version=version) == DONE
        assert setting(asking, TOPIC, "t", "segment.bytes").value == "1048576"
        assert setting(asking, TOPIC, "t", "retention.ms").value == "1000"
        assert change(asking, TOPIC, "t", [("segment.bytes", DELETE, None)], version=version) == DONE
        assert setting(asking, TOPIC, "t", "segment.bytes").config_source == Source.DEFAULT


def test_a_topic_with_settings_that_we_do_not_know_can_be_changed(asking: Asking, broker: Broker) -> None:
    """An Apache Kafka of the cluster has stored them, and they stay."""

    async def stored(real: RealBroker) -> dict[str, str]:
        return await read_config(real.parts.session, "topics", "listed")

    async def store(real: RealBroker) -> None:
        config = {**await stored(real), "of.another.version": "x"}
        await real.parts.session.set(paths.config("topics", "listed"), encode_config(config))

    broker.call(store)
    assert change(asking, TOPIC, "listed", [("segment.bytes", SET, "1048576")]) == DONE
    assert broker.call(stored)["of.another.version"] == "x"
    assert change(asking, TOPIC, "listed", [("of.another.version", SET, "y")])[0] == ErrorCode.INVALID_CONFIG
    assert change(asking, TOPIC, "listed", [("segment.bytes", DELETE, None)]) == DONE
    assert change(asking, TOPIC, "listed", [("of.another.version", DELETE, None)]) == DONE
    assert "of.another.version" not in broker.call(stored)


def test_lists_grow_and_shrink_from_the_default(asking: Asking) -> None:
    def value() -> str | None:
        return setting(asking, TOPIC, "listed", "cleanup.policy").value

    assert change(asking, TOPIC, "listed", [("cleanup.policy", APPEND, "compact")]) == DONE
    assert value() == "delete,compact"
    assert change(asking, TOPIC, "listed", [("cleanup.policy", APPEND, "compact,delete")]) == DONE
    assert value() == "delete,compact"
    assert change(asking, TOPIC, "listed", [("cleanup.policy", SUBTRACT, "delete")]) == DONE
    assert value() == "compact"
    code, message = change(asking, TOPIC, "listed", [("cleanup.policy", APPEND, "burn")])
    assert code == ErrorCode.INVALID_CONFIG
    assert "burn" in (message or "")
    assert value() == "compact"


def test_what_tools_that_move_replicas_set(asking: Asking) -> None:
    name = "follower.replication.throttled.replicas"
    untouched = setting(asking, TOPIC, "listed", name)
    assert (untouched.value, untouched.config_source, untouched.synonyms) == ("", Source.DEFAULT, ())
    for edits, value in (((name, SET, "*"), "*"), ((name, SET, "0:5"), "0:5"), ((name, APPEND, "1:5"), "0:5,1:5")):
        assert change(asking, TOPIC, "listed", [edits]) == DONE
        found = setting(asking, TOPIC, "listed", name)
        assert (found.value, found.config_source) == (value, Source.TOPIC)
    assert change(asking, TOPIC, "listed", [(name, DELETE, None)]) == DONE
    assert setting(asking, TOPIC, "listed", name).value == ""


def test_checking_changes_nothing(asking: Asking) -> None:
    assert change(asking, TOPIC, "checked", [("retention.ms", SET, "7")], validate_only=True) == DONE
    assert setting(asking, TOPIC, "checked", "retention.ms").value == "1000"
    code, _ = change(asking, TOPIC, "checked", [("retention.ms", SET, "soon")], validate_only=True)
    assert code == ErrorCode.INVALID_CONFIG
    assert change(asking, BROKER, "5", [("message.max.bytes", SET, "7")], validate_only=True) == DONE
    assert setting(asking, BROKER, "5", "message.max.bytes").value == "1048588"


@pytest.mark.parametrize(
    ("edits", "code", "says"),
    [
        ([("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG, "soon"),
        ([("retention.ms", SET, "")], ErrorCode.INVALID_CONFIG, "''"),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST, "retention.ms"),
        ([("retentoin.ms", SET, "1")], ErrorCode.INVALID_CONFIG, "did you mean 'retention.ms'?"),
        ([("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG, "list"),
        ([("leader.replication.throttled.replicas", SET, "0:")], ErrorCode.INVALID_CONFIG, "partition:broker"),
        ([("remote.storage.enable", SET, "true")], ErrorCode.INVALID_CONFIG, "no remote storage"),
        ([("no.such", APPEND, "1")], ErrorCode.INVALID_CONFIG, "no.such"),
        ([("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST, "9"),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST, "more than once"),
        (
            [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")],
            ErrorCode.INVALID_CONFIG,
            "max.compaction.lag.ms",
        ),
    ],
)
def test_wrong_topic_settings(asking: Asking, edits: Edits, code: ErrorCode, says: str) -> None:
    found, message = change(asking, TOPIC, "t", [("segment.ms", SET, "99"), *edits])
    assert found == code
    assert says in (message or "")
    # All of a resource or nothing of it.
    assert setting(asking, TOPIC, "t", "segment.ms").config_source == Source.DEFAULT


@pytest.mark.parametrize(
    ("name", "edits", "says"),
    [
        ("5", [("broker.id", SET, "6")], "broker.id"),
        ("", [("log.retention.hours", SET, "6")], "log.retention.hours"),
        ("5", [("log.retention.ms", SET, "soon")], "soon"),
        ("", [("max.connections.per.ip", SET, "-1")], "at least 0"),
        ("5", [("socket.request.max.bytes", SET, "1")], "socket.request.max.bytes"),
        ("6", [("message.max.bytes", SET, "1")], "broker 5"),
        ("five", [("message.max.bytes", SET, "1")], "five"),
    ],
)
def test_wrong_broker_settings(asking: Asking, name: str, edits: Edits, says: str) -> None:
    code, message = change(asking, BROKER, name, edits)
    assert code == ErrorCode.INVALID_REQUEST
    assert says in (message or "")


def test_each_resource_is_answered_for_itself(asking: Asking) -> None:
    good: Edits = [("segment.ms", SET, "5000")]
    outcomes = change_all(asking, [(TOPIC, "t", good), (TOPIC, "none", good), (TOPIC, "a b", good), (TOPIC, "", good)])
    assert [code for code, _ in outcomes] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUEST,
    ]
    assert setting(asking, TOPIC, "t", "segment.ms").value == "5000"
    assert change(asking, TOPIC, "t", [("segment.ms", DELETE, None)]) == DONE
    twice = change_all(asking, [(TOPIC, "t", good), (BROKER, "5", []), (TOPIC, "t", [])])
    assert [code for code, _ in twice] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert setting(asking, TOPIC, "t", "segment.ms").config_source == Source.DEFAULT
    assert change_all(asking, [(99, "what", [])])[0][0] == ErrorCode.INVALID_REQUEST


def test_changes_at_the_same_time_do_not_undo_each_other(broker: Broker) -> None:
    names = ["segment.ms", "segment.bytes", "flush.ms", "max.message.bytes", "delete.retention.ms", "retention.bytes"]

    def set_one(name: str) -> None:
        with Asking(broker.bootstrap) as own:
            must_set(own, TOPIC, "crowd", {name: "1048577"})

    with ThreadPoolExecutor(len(names)) as crowd:
        list(crowd.map(set_one, names))
    with Asking(broker.bootstrap) as asking:
        values = {each.name: each.value for each in look(asking, TOPIC, "crowd", *names).configs}
    assert values == dict.fromkeys(names, "1048577")


def test_names_that_no_setting_has_are_kept_for_brokers(asking: Asking) -> None:
    must_set(asking, BROKER, "5", {"of.some.plugin": "1"})
    assert setting(asking, BROKER, "5", "of.some.plugin").config_source == Source.DYNAMIC_BROKER
    assert change(asking, BROKER, "5", [("of.some.plugin", DELETE, None)]) == DONE
    assert look(asking, BROKER, "5", "of.some.plugin").configs == ()


def test_levels_of_loggers(asking: Asking) -> None:
    logger = logging.getLogger("ixion.test.level")
    logger.setLevel(logging.NOTSET)
    assert change(asking, LOGGER, "5", [("ixion.test.level", SET, "TRACE")], validate_only=True) == DONE
    assert logger.level == logging.NOTSET
    assert change(asking, LOGGER, "5", [("ixion.test.level", SET, "TRACE")]) == DONE
    assert logger.level == 5
    assert setting(asking, LOGGER, "5", "ixion.test.level").value == "TRACE"
    assert change(asking, LOGGER, "5", [("ixion.test.level", DELETE, None)]) == DONE
    assert logger.level == logging.NOTSET
    wrong: list[tuple[str, Edits, ErrorCode]] = [
        ("5", [("ixion.no.such.logger", SET, "INFO")], ErrorCode.INVALID_CONFIG),
        ("5", [("ixion.test.level", SET, "LOUD")], ErrorCode.INVALID_CONFIG),
        ("5", [("root", DELETE, None)], ErrorCode.INVALID_REQUEST),
        ("5", [("root", APPEND, "INFO")], ErrorCode.INVALID_REQUEST),
        ("", [("root", SET, "INFO")], ErrorCode.INVALID_REQUEST),
    ]
    for name, edits, code in wrong:
        assert change(asking, LOGGER, name, edits)[0] == code
