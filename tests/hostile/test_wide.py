"""No request of a megabyte, however wide, takes a turn of the loop that is longer than the limit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devtools.stalls import LIMIT_MS
from ixion.apis.served import SERVED
from ixion.protocol.registry import ApiKey
from tests.hostile.genes import lists_of
from tests.hostile.wide import Wide, genes

SIZE = 1_000_000


@pytest.fixture(scope="module")
def wide() -> Iterator[Wide]:
    with Wide() as running:
        yield running


@pytest.mark.parametrize("api", [api for api in SERVED if lists_of(api)], ids=lambda api: api.name)
def test_the_widest_request_lets_the_loop_have_its_turns(wide: Wide, api: ApiKey) -> None:
    for gene in genes(api):
        turn, _ = wide.widest(api, gene, SIZE)
        assert turn.busy_ms <= LIMIT_MS, gene.as_json()
