"""Every setting of Kafka 4.3's own clients: it works here under its name, with Kafka's default, or is refused with a
reason. `kafka_settings.txt` lists them, as `ConfigDef` of the Java clients has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ixion.clients import Admin, Consumer, Producer
from ixion.clients.admin.settings import AdminOptions, read_admin_settings
from ixion.clients.core.consumer.settings import ConsumerSettings
from ixion.clients.refused import REFUSED, why_refused
from ixion.clients.security import NAMES
from ixion.clients.settings import ProducerOptions, read_producer_settings
from tests.clients.test_clients_page import PAGE, Asked

CLIENTS: dict[str, Callable[..., object]] = {"p": Producer, "c": Consumer, "a": Admin}
# Arguments of the constructor, or settings that are read from elsewhere than the tables.
ARGUMENTS = {"c": {"key_deserializer", "value_deserializer"}, "p": set[str](), "a": set[str]()}
OURS = {
    "p": set(ProducerOptions.__annotations__) | NAMES,
    "c": set(ConsumerSettings._fields) | NAMES | ARGUMENTS["c"],
    "a": set(AdminOptions.__annotations__) | NAMES,
}
DIFFERENT = {
    "client_id": "ixion",  # Kafka's is empty
    "sasl_mechanism": None,  # Kafka's is GSSAPI, which is not there
    "ssl_cipher_suites": None,
    "partition_assignment_strategy": ("range", "cooperative-sticky"),  # names, not classes
    "group_instance_id": None,
}


def kafkas() -> Iterator[tuple[str, str, str, str]]:
    """Client, name, type and default."""
    for line in (Path(__file__).parent / "kafka_settings.txt").read_text().splitlines()[1:]:
        clients, name, kind, *default = line.split(" ", 3)
        for client in clients:
            yield client, name, kind, default[0] if default else ""


def our_defaults(client: str) -> dict[str, Any]:
    if client == "c":
        return {**ConsumerSettings._field_defaults}
    asked = Asked()
    (read_producer_settings if client == "p" else read_admin_settings)(asked)
    return asked.defaults


@pytest.mark.parametrize("client", CLIENTS)
def test_a_setting_of_kafka_works_or_is_refused_with_a_reason(client: str) -> None:
    defaults = our_defaults(client)
    works, refused = 0, 0
    for _, dotted, _, default in (each for each in kafkas() if each[0] == client):
        name = dotted.replace(".", "_")
        if name in OURS[client]:
            works += 1
            if name in DIFFERENT:
                assert defaults.get(name, DIFFERENT[name]) == DIFFERENT[name], name
            elif name in defaults and name not in NAMES:
                assert str(defaults[name]).lower() == default.replace("null", "none").replace("(none)", "none"), name
            continue
        refused += 1
        reason = why_refused(dotted)
        assert reason is not None, f"{dotted} is neither ours nor refused with a reason"
        for written in (name, dotted):
            with pytest.raises((TypeError, ValueError)) as caught:
                CLIENTS[client]("127.0.0.1:9092", **{written: "x"})
            assert str(caught.value) == f"unknown setting {written!r}; {reason}"
    assert works >= 20
    assert refused > 20


def test_a_name_with_dots_is_answered_with_ours() -> None:
    for client, name in (("p", "linger.ms"), ("c", "max.poll.records"), ("a", "request.timeout.ms")):
        with pytest.raises((TypeError, ValueError), match=f"write '{name.replace('.', '_')}'"):
            CLIENTS[client]("127.0.0.1:9092", **{name: 5})


def test_the_page_has_the_refused_ones_with_their_reasons() -> None:
    rows = re.findall(
        r"^\| `([\w*]+)` \| ([^`|]+) \|$", PAGE.partition("## Settings of Kafka that are refused")[2], re.M
    )
    assert dict(rows) == REFUSED


def test_every_refused_name_is_one_of_kafkas() -> None:
    names = {name.replace(".", "_") for _, name, _, _ in kafkas()}
    for pattern in REFUSED:
        assert any(re.fullmatch(pattern.replace("*", r"\w+"), name) for name in names), pattern


@pytest.mark.parametrize("client", CLIENTS)
def test_the_largest_values_are_taken_and_larger_ones_refused(client: str) -> None:
    for _, dotted, kind, _ in (each for each in kafkas() if each[0] == client):
        name = dotted.replace(".", "_")
        if name not in OURS[client] or kind not in ("INT", "LONG") or name == "max_in_flight_requests_per_connection":
            continue
        largest = 2**31 - 1 if kind == "INT" or name == "buffer_memory" else 2**63 - 1
        more = {"group_protocol": "consumer"} if name == "heartbeat_interval_ms" else {}  # else the session limits it
        CLIENTS[client]("127.0.0.1:9092", **{name: largest}, **more).close()  # type: ignore[attr-defined]
        with pytest.raises(ValueError, match=name):
            CLIENTS[client]("127.0.0.1:9092", **{name: 2**63 + 2048})
        if client != "c":
            for odd in (float("inf"), float("nan")):
                with pytest.raises(ValueError, match=name):
                    CLIENTS[client]("127.0.0.1:9092", **{name: odd})


def test_share_groups_are_refused_in_one_sentence() -> None:
    with pytest.raises(
        ValueError, match=r"group_protocol is 'share'; ShareConsumer is the client of share groups \(KIP-932\)"
    ):
        Consumer("127.0.0.1:9092", group_protocol="share")
