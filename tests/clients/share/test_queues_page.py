"""docs/queues.md names every setting of the share consumer with its default."""

from __future__ import annotations

from pathlib import Path

from ixion.clients.core.share.settings import ShareSettings
from ixion.clients.security import NAMES
from ixion.clients.share.settings import ShareConsumerOptions
from tests.clients.test_clients_page import table

PAGE = (Path(__file__).parents[3] / "docs" / "queues.md").read_text()


def test_the_table_lists_every_setting_with_its_default() -> None:
    assert table(PAGE) == {name: repr(default) for name, default in ShareSettings._field_defaults.items()}


def test_the_typed_options_are_the_same() -> None:
    assert set(ShareConsumerOptions.__annotations__) == set(ShareSettings._fields) | NAMES
