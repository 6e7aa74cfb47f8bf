"""docs/clients.md: its examples run, and its settings are those that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ixion.clients import Producer
from ixion.clients.consumer.settings import ConsumerSettings
from ixion.testing import Broker

PAGE = (Path(__file__).parent.parent.parent / "docs" / "clients.md").read_text()


def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == 3
    with Broker() as broker:
        broker.create_topic("orders", 1)
        with Producer(broker.bootstrap) as producer:
            for number in range(3):
                producer.send("orders", b"%d" % number)
        for example in examples:
            exec(compile(example.replace("127.0.0.1:9092", broker.bootstrap), "docs/clients.md", "exec"), {})
    assert "orders 0 2 None b'2'" in capsys.readouterr().out


def test_the_table_lists_every_setting_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", PAGE, re.MULTILINE)
    assert dict(rows) == {name: repr(default) for name, default in ConsumerSettings._field_defaults.items()}
