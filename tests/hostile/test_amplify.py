"""The worst requests that a search has found, of every API and of 1, 10 and 100 KB, stay within their bounds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest

from ixion.broker.apis.served import SERVED
from ixion.language.protocol.registry import ApiKey
from tests.hostile.amplify import SIZES, bounds, measured, worst_of
from tests.hostile.genes import BOMB, COMPRESSED, Gene, first_genes, lists_of, shaped
from tests.hostile.probe import Probe

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads times and memory from /proc")


AGAIN_S = 1.5  # a second stall within one second of the first is not logged at once


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probe]:
    with Probe(tmp_path_factory.mktemp("amplify")) as running:
        yield running
        running.served.stop()
        assert running.stalls() == []


def look_for_stalls(probe: Probe, api: ApiKey, gene: Gene, size: int) -> None:
    """A turn of the loop that was too long is one that is so again: a first one may import, and while other processes
    need its core and its memory, any turn may need a multiple of its time."""
    held = probe.stalls()
    if held:
        until = time.monotonic() + AGAIN_S
        while time.monotonic() < until:
            measured(probe, api, gene, size)
        assert probe.stalls() == [], f"{size} bytes, {gene}; first {held}"


@pytest.mark.parametrize("api", SERVED, ids=lambda api: api.stem)
def test_the_worst_requests_stay_within_their_bounds(probe: Probe, api: ApiKey) -> None:
    for size in SIZES:
        for gene in worst_of(api, size):
            cost = measured(probe, api, gene, size).cost
            if any(value > limit for value, limit in zip(cost, bounds(size), strict=True)):
                cost = measured(probe, api, gene, size).cost  # a first time imports, and a collection may fall into it
            for value, limit, name in zip(cost, bounds(size), cost._fields, strict=True):
                assert value <= limit, f"{name} of {size} bytes, {gene}"
            look_for_stalls(probe, api, gene, size)


@pytest.mark.parametrize("records", [*COMPRESSED, "headers"])
def test_batches_that_are_much_work_stay_within_the_same_bounds(probe: Probe, records: str) -> None:
    """Time is that of the event loop: what takes long is done on worker threads."""
    gene = Gene(flood="/topic_data/partition_data", text="wide", records=records, newest=False)
    for size in SIZES:
        cost = measured(probe, ApiKey.PRODUCE, gene, size).cost
        assert cost.busy_us <= bounds(size).busy_us, f"{size} bytes of {records}"
        assert cost.memory_kb <= bounds(size).memory_kb + 4 * BOMB // 1_000, f"{size} bytes of {records}"
        look_for_stalls(probe, ApiKey.PRODUCE, gene, size)


def test_a_turn_that_is_always_too_long_is_seen(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "the event loop was held up for 900 ms (900 ms of processor time) by callback Lane._turn"
    answers = iter([[line], [], [line], [line]])
    monkeypatch.setattr(probe, "stalls", lambda: next(answers))
    monkeypatch.setitem(globals(), "AGAIN_S", 0)
    look_for_stalls(probe, ApiKey.METADATA, Gene(), SIZES[0])
    with pytest.raises(AssertionError, match=r"Lane\._turn"):
        look_for_stalls(probe, ApiKey.METADATA, Gene(), SIZES[0])


def test_a_gene_makes_requests_of_any_size() -> None:
    ids = [bytes(16)]
    for size in SIZES:
        made = shaped(ApiKey.FETCH, Gene(flood="/topics/partitions"), size, ids)
        assert size * 3 // 4 < len(made) < size * 11 // 10


def test_every_list_of_every_api_is_flooded() -> None:
    for api in SERVED:
        flooded = {gene.flood for gene in first_genes(api)}
        assert set(lists_of(api)) <= flooded
