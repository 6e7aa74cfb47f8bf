"""A wrong setting is named when the client is made."""

from __future__ import annotations

from typing import Any

import pytest

from ixion.clients import Producer
from ixion.clients.admin.settings import AdminOptions
from ixion.clients.consumer.settings import ConsumerOptions
from ixion.clients.security import NAMES
from ixion.clients.settings import ProducerOptions, read_producer_settings
from ixion.clients.share.settings import ShareConsumerOptions
from ixion.clients.table import SETTINGS
from ixion.language.records.compression import Codec


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"linger_sm": 5}, TypeError, "unknown setting 'linger_sm'; did you mean 'linger_ms'?"),
        ({"zzz": 5}, TypeError, "unknown setting 'zzz'"),
        ({"linger_ms": -1}, ValueError, "linger_ms is -1; allowed are numbers from 0 on"),
        ({"linger_ms": "5"}, ValueError, "linger_ms is '5'; allowed are numbers from 0 on"),
        ({"linger_ms": float("nan")}, ValueError, "linger_ms is nan; allowed are numbers from 0 on"),
        ({"acks": 2}, ValueError, "acks is 2; allowed are 'all', '-1', '1', '0'"),
        ({"acks": True}, ValueError, "acks is True; allowed are 'all', '-1', '1', '0'"),
        ({"compression": "brotli"}, ValueError, "compression is 'brotli'; allowed are 'none', 'gzip', 'snappy', 'lz4'"),
        ({"batch_size": 1.5}, ValueError, "batch_size is 1.5; allowed are whole numbers from 0 to 2147483647"),
        ({"retries": -1}, ValueError, "retries is -1; allowed are whole numbers from 0 to 2147483647"),
        ({"enable_idempotence": 1}, ValueError, "enable_idempotence is 1; allowed are True and False"),
        ({"client_id": b"x"}, ValueError, "client_id is b'x'; allowed is text"),
        ({"value_serializer": "json"}, ValueError, "value_serializer is 'json'; allowed are functions and None"),
        ({"compression_level": "9"}, ValueError, "compression_level is '9'; allowed are whole numbers and None"),
        ({"acks": 1, "enable_idempotence": True}, ValueError, "enable_idempotence needs acks='all'"),
        (
            {"max_in_flight_requests_per_connection": 6, "enable_idempotence": True},
            ValueError,
            "enable_idempotence needs",
        ),
    ],
)
def test_a_wrong_setting_is_named(given: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        Producer("127.0.0.1:9092", **given)
    assert str(caught.value).startswith(text)


def test_an_address_that_is_none() -> None:
    with pytest.raises(ValueError, match="is not an address"):
        Producer("127.0.0.1:port")


def test_the_defaults_are_kafkas() -> None:
    settings = read_producer_settings({})
    assert (settings.acks, settings.enable_idempotence, settings.max_in_flight) == (-1, True, 5)
    assert (settings.batch_size, settings.linger_s, settings.buffer_memory) == (16_384, 0.005, 33_554_432)
    assert (settings.max_block_s, settings.max_request_size, settings.retries) == (60.0, 1_048_576, 2**31 - 1)
    assert (settings.delivery_timeout_s, settings.client.request_timeout_s) == (120.0, 30.0)
    assert (settings.client.retry_backoff_s, settings.client.retry_backoff_max_s) == (0.1, 1.0)
    assert (settings.client.reconnect_backoff_s, settings.client.reconnect_backoff_max_s) == (0.05, 1.0)
    assert settings.client.metadata_max_age_s == 300.0
    assert settings.compression is Codec.NONE


def test_less_than_all_acknowledgements_turn_idempotence_off() -> None:
    assert not read_producer_settings({"acks": "1"}).enable_idempotence
    assert not read_producer_settings({"max_in_flight_requests_per_connection": 10}).enable_idempotence


def test_every_option_is_read() -> None:
    """A name that is allowed and has no effect would be worse than one that is refused."""

    class Watched(dict[str, Any]):
        def __init__(self) -> None:
            super().__init__()
            self.asked: set[str] = set()

        def get(self, key: str, default: Any = None) -> Any:
            self.asked.add(key)
            return default

    given = Watched()
    read_producer_settings(given)
    assert given.asked == set(ProducerOptions.__annotations__)


@pytest.mark.parametrize(
    ("given", "least"),
    [
        ({"delivery_timeout_ms": 30_004}, 30_005),
        ({"delivery_timeout_ms": 1_000, "request_timeout_ms": 900, "linger_ms": 101}, 1_001),
        ({"delivery_timeout_ms": 0, "request_timeout_ms": 1, "linger_ms": 0}, 1),
    ],
)
def test_a_delivery_timeout_that_ends_before_the_first_attempt_is_refused(given: ProducerOptions, least: int) -> None:
    """As Kafka's producer does, with its words."""
    text = f"it should be equal to or larger than linger_ms \\+ request_timeout_ms \\({least}\\)"
    with pytest.raises(ValueError, match=f"delivery_timeout_ms is {given['delivery_timeout_ms']}; {text}"):
        Producer("127.0.0.1:1", **given)
    enough: ProducerOptions = {**given, "delivery_timeout_ms": least}
    assert read_producer_settings(enough).delivery_timeout_s == least / 1000


def test_a_default_delivery_timeout_makes_room_for_longer_ones_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    assert read_producer_settings({"linger_ms": 200_000}).delivery_timeout_s == 230
    (line,) = caplog.messages
    assert line.endswith("should be equal to or larger than linger_ms + request_timeout_ms; it is set to 230000")
    assert read_producer_settings({"linger_ms": 2**40}).delivery_timeout_s * 1000 == 2**31 - 1
    caplog.clear()
    assert read_producer_settings({"linger_ms": 90_000}).delivery_timeout_s == 120
    assert not caplog.messages


def test_one_table_has_the_settings_of_all_clients() -> None:
    """Types, which mypy wants to read, stand in the options; each must fit its row."""
    options = [ProducerOptions, ConsumerOptions, ShareConsumerOptions, AdminOptions]
    types: dict[str, set[str]] = {}
    for each in options:
        for name, kind in each.__annotations__.items():
            if name not in NAMES:
                types.setdefault(name, set()).add(getattr(kind, "__forward_arg__", str(kind)))
    assert types.keys() == SETTINGS.keys()
    for name, row in SETTINGS.items():
        is_number = isinstance(row.default, int) and not isinstance(row.default, bool)
        assert bool(types[name] & {"int", "float"}) == is_number, name
        assert (types[name] == {"bool"}) == isinstance(row.default, bool), name
        assert not is_number or row.least <= row.default <= row.most, name
        assert name.endswith("_ms") == (row.unit == "ms"), name
