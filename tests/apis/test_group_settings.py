"""Settings of consumer groups (KIP-848): set, described, listed, in force for the group, kept over a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.config.dynamic import Source
from ixion.config.setting import Kind
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k74_list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ixion.testing.broker import Broker
from tests.apis.asking import Asking
from tests.apis.settings import DELETE, SET, Edits, change, look, must_set, setting

BROKER, GROUP = 4, 32
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
INTERVAL = "consumer.assignment.interval.ms"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"broker.id": 5}) as running:
        yield running


def in_force(broker: Broker, group: str) -> tuple[int, int]:
    async def find(real: RealBroker) -> tuple[int, int]:
        limits = real.parts.groups.get().consumer._limits
        return limits.session_timeout_ms(group), limits.heartbeat_interval_ms(group)

    return broker.call(find)


def listed(asking: Asking) -> list[str]:
    answer = asking.ask(ListConfigResourcesRequest(resource_types=(GROUP,)), ListConfigResourcesResponse)
    return sorted(each.resource_name for each in answer.config_resources)


def test_a_group_has_the_brokers_settings_until_it_has_its_own(broker: Broker, asking: Asking) -> None:
    untouched = setting(asking, GROUP, "g", SESSION)
    assert (untouched.value, untouched.config_source, untouched.config_type) == ("45000", Source.DEFAULT, Kind.INT)
    assert [(each.name, each.source) for each in untouched.synonyms] == [
        ("group.consumer.session.timeout.ms", Source.DEFAULT)
    ]
    assert in_force(broker, "g") == (45_000, 5_000)
    must_set(asking, GROUP, "g", {SESSION: "50000"})
    own = setting(asking, GROUP, "g", SESSION)
    assert (own.value, own.config_source, own.read_only) == ("50000", Source.GROUP, False)
    assert [(each.name, each.value, each.source) for each in own.synonyms] == [
        (SESSION, "50000", Source.GROUP),
        ("group.consumer.session.timeout.ms", "45000", Source.DEFAULT),
    ]
    assert in_force(broker, "g") == (50_000, 5_000)
    assert in_force(broker, "other") == (45_000, 5_000)
    assert listed(asking) == ["g"]
    assert change(asking, GROUP, "g", [(SESSION, DELETE, None)])[0] == ErrorCode.NONE
    assert in_force(broker, "g") == (45_000, 5_000)
    assert listed(asking) == []


def test_a_group_has_an_assignment_interval_of_its_own_or_the_brokers_as_it_is_now(
    broker: Broker, asking: Asking
) -> None:
    def interval(group: str) -> int:
        async def find(real: RealBroker) -> int:
            return real.parts.groups.get().consumer._limits.assignment_interval_ms(group)

        return broker.call(find)

    must_set(asking, GROUP, "g", {INTERVAL: "15000"})
    must_set(asking, BROKER, "", {f"group.{INTERVAL}": "700"})
    assert (interval("g"), interval("other")) == (15_000, 700)
    shown = setting(asking, GROUP, "other", INTERVAL)
    assert (shown.value, shown.config_source) == ("700", Source.DYNAMIC_DEFAULT)


def test_a_group_can_be_called_anything(asking: Asking) -> None:
    names = ["/", "..", "a/b c", "ä.%2F", "<default>"]
    for name in names:
        must_set(asking, GROUP, name, {HEARTBEAT: "6000"})
    assert listed(asking) == sorted(names)


@pytest.mark.parametrize(
    ("edits", "code", "says"),
    [
        ([(SESSION, SET, "10000")], ErrorCode.INVALID_CONFIG, "group.consumer.min.session.timeout.ms (45000)"),
        ([(HEARTBEAT, SET, "99999")], ErrorCode.INVALID_CONFIG, "group.consumer.max.heartbeat.interval.ms (15000)"),
        ([(INTERVAL, SET, "15001")], ErrorCode.INVALID_CONFIG, "group.consumer.max.assignment.interval.ms (15000)"),
        ([(SESSION, SET, "soon")], ErrorCode.INVALID_CONFIG, "soon"),
        ([("consumer.session.timeout", SET, "1")], ErrorCode.INVALID_CONFIG, f"did you mean {SESSION!r}?"),
        ([(SESSION, SET, None)], ErrorCode.INVALID_REQUEST, SESSION),
    ],
)
def test_what_a_group_cannot_have(asking: Asking, edits: Edits, code: ErrorCode, says: str) -> None:
    found, message = change(asking, GROUP, "g", edits)
    assert found == code
    assert says in (message or "")
    assert listed(asking) == []


def test_there_is_no_group_without_a_name(asking: Asking) -> None:
    assert change(asking, GROUP, "", [])[0] == ErrorCode.INVALID_REQUEST
    assert look(asking, GROUP, "").error_code == ErrorCode.INVALID_REQUEST


def test_they_survive_a_restart(tmp_path: Path) -> None:
    with Broker({"broker.id": 5}, data=tmp_path) as running, Asking(running.bootstrap) as asking:
        must_set(asking, GROUP, "a/b", {HEARTBEAT: "6000"})
    with Broker({"broker.id": 5}, data=tmp_path) as running, Asking(running.bootstrap) as asking:
        assert setting(asking, GROUP, "a/b", HEARTBEAT).value == "6000"
        assert in_force(running, "a/b") == (45_000, 6_000)
