"""No request, however wide, takes a turn of the loop that is longer than the limit.

`tests.hostile.wide` as a program walks all lists of all requests; here it is the innermost list of each, which is where
a handler that takes one topic at a time is found out.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devtools.stalls import LIMIT_MS
from ixion.broker.apis.served import SERVED
from ixion.language.protocol.registry import ApiKey
from tests.hostile.genes import Gene, lists_of
from tests.hostile.wide import Wide

SIZE = 250_000


@pytest.fixture(scope="module")
def wide() -> Iterator[Wide]:
    with Wide() as running:
        yield running


@pytest.mark.parametrize("api", [api for api in SERVED if lists_of(api)], ids=lambda api: api.name)
def test_the_widest_request_lets_the_loop_have_its_turns(wide: Wide, api: ApiKey) -> None:
    innermost = lists_of(api)[-1]
    for shape in ("flat", "deep") if innermost.count("/") > 1 else ("flat",):
        turn, _ = wide.widest(api, Gene(flood=innermost, text="unknown", shape=shape), SIZE)
        assert turn.busy_ms <= LIMIT_MS, shape
