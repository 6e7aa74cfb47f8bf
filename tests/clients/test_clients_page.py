"""docs/clients.md: its examples run, and its settings are those that there are."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from ixion.clients import Admin, Producer
from ixion.clients.core.consumer.settings import ConsumerSettings
from ixion.clients.security import NAMES
from ixion.clients.settings import read_producer_settings
from ixion.testing import Broker

PAGE = (Path(__file__).parent.parent.parent / "docs" / "clients.md").read_text()


def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == 8
    with Broker() as broker:
        broker.create_topic("orders", 1)
        broker.create_topic("invoices", 1)
        with Producer(broker.bootstrap) as producer:
            for number in range(3):
                producer.send("orders", b"%d" % number)
        for example in examples:
            exec(compile(example.replace("127.0.0.1:9092", broker.bootstrap), "docs/clients.md", "exec"), {})
    assert "orders 0 2 None b'2'" in capsys.readouterr().out


def table(text: str) -> dict[str, str]:
    return dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", text, re.MULTILINE))


def test_the_tables_list_every_setting_with_its_default() -> None:
    consumer, _, rest = PAGE.partition("## Producer")
    producer, _, security = rest.partition("## Administrator")
    assert table(consumer) == {name: repr(default) for name, default in ConsumerSettings._field_defaults.items()}
    asked = Asked()
    read_producer_settings(asked)
    assert table(producer) == {name: repr(value) for name, value in asked.defaults.items() if name not in NAMES}
    assert table(security).keys() == NAMES


def test_the_calls_of_other_administrators_exist() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in an old way
        from kafka import KafkaAdminClient
    from aiokafka.admin import AIOKafkaAdminClient
    from confluent_kafka.admin import AdminClient

    rows = PAGE.partition("### Coming from another administrator")[2].partition("\n\n")[2].splitlines()[3:]
    rows = rows[: rows.index("") - 1]
    assert len(rows) > 12
    for row in rows:
        cells = row.strip("| ").split(" | ")
        for kind, cell in zip((Admin, None, AdminClient, KafkaAdminClient, AIOKafkaAdminClient), cells, strict=True):
            for name in re.findall(r"`(?:await )?([a-z_]+)[`(]", cell):
                assert kind is None or hasattr(kind, name), f"{kind} has no {name}"


class Asked(dict[str, Any]):
    """No setting is given; notes the default of each that is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.defaults: dict[str, Any] = {}

    def get(self, key: str, default: Any = None) -> Any:
        self.defaults[key] = default
        return default
