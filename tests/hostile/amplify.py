"""Searches for the requests that cost a broker most, and writes down what it found: `make soak-amplify`.

For every API that is served and for requests of 1, 10 and 100 KB it tries the first genes, then varies the worst of
them for as long as it has time. The worst requests go into worst.json, which the tests send again each time, and the
figures into docs/amplification.md. `--report` measures those that are known without looking for others. At the end it
measures what stays in memory when the clients have gone (`tests/hostile/residue.py`).
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ixion.broker.apis.served import SERVED
from ixion.cli.main import build_kind
from ixion.language.protocol.registry import ApiKey
from tests.hostile.genes import Gene, first_genes, lists_of, shaped
from tests.hostile.probe import Cost, Probe

SIZES: Final = (1_000, 10_000, 100_000)
KEPT: Final = 1  # genes of each API and size
WORST: Final = Path(__file__).parent / "worst.json"
PAGE: Final = Path(__file__).parents[2] / "docs" / "amplification.md"
SLOWER: Final = 1 if build_kind() == "compiled" else 5  # interpreted code takes about so many times as long

HEAD: Final = """# The worst requests

What a client can make the broker do with one request of 1, 10 or 100 KB. A search (`make soak-amplify`) varied the
requests of every API: names repeated, unknown or internal, lists long or deep, extreme numbers. These are the
most expensive requests that it found. `make test` sends them again and fails above the bounds in
`tests/hostile/amplify.py`.

Each cell shows the processor time of the event loop in ms, the memory that the broker grew by in MB, and the size of
the answer in KB. Measured with the {kind} build, on 50 topics of one partition and one of 500.

| API | 1 KB | 10 KB | 100 KB |
|---|---|---|---|
"""


class Found(NamedTuple):
    gene: Gene
    cost: Cost

    def score(self, size: int) -> float:
        """How near it comes to a bound."""
        return max(value / limit for value, limit in zip(self.cost, bounds(size), strict=True))


def bounds(size: int) -> Cost:
    """What a request of so many bytes may cost. A turn of the loop is bounded by itself, see `devtools.stalls`.

    Processor time is twice what a quiet machine needs for the worst, with the optimization of the tests: on a busy one
    a core is shared, and works slower.
    """
    return Cost((20_000 + size * 4) * SLOWER, 6_000 + size // 10, 200_000 + 30 * size)


def known() -> dict[str, dict[str, list[Gene]]]:
    """By the stem of an API and by size."""
    if not WORST.exists():
        return {}
    stored = json.loads(WORST.read_text())
    return {
        stem: {size: [Gene(**gene) for gene in genes] for size, genes in sizes.items()}
        for stem, sizes in stored.items()
    }


def worst_of(api: ApiKey, size: int) -> list[Gene]:
    """The worst that are known; floods of its first lists, if no search has seen this API yet."""
    found = known().get(api.stem)
    if found is not None:
        return found[str(size)]
    return [Gene(flood=flood, text="unknown") for flood in lists_of(api)[:2]] or [Gene()]


def measured(probe: Probe, api: ApiKey, gene: Gene, size: int) -> Found:
    return Found(gene, probe.cost(shaped(api, gene, size, probe.ids)))


def search(probe: Probe, api: ApiKey, seconds: float, chance: random.Random) -> dict[int, list[Found]]:
    until = time.monotonic() + seconds
    found: dict[int, list[Found]] = {size: [] for size in SIZES}
    first = list(first_genes(api))
    chance.shuffle(first)
    beginnings: dict[Gene, None] = {}
    for genes in known().get(api.stem, {}).values():
        beginnings.update(dict.fromkeys(genes))
    middle = [measured(probe, api, gene, SIZES[1]) for gene in in_time(first, until - seconds / 2)]
    middle.sort(key=lambda each: -each.score(SIZES[1]))
    beginnings.update(dict.fromkeys(each.gene for each in middle[:4]))
    for gene in beginnings:
        for size in SIZES:
            keep(found[size], measured(probe, api, gene, size), size)
    while time.monotonic() < until:
        size = chance.choice(SIZES)
        keep(found[size], measured(probe, api, chance.choice(found[size]).gene.varied(api, chance), size), size)
    return found


def in_time(genes: list[Gene], until: float) -> Iterator[Gene]:
    """At least three of them."""
    for number, gene in enumerate(genes):
        if number >= 3 and time.monotonic() > until:
            return
        yield gene


def keep(found: list[Found], new: Found, size: int) -> None:
    if all(new.gene != each.gene for each in found):
        found.append(new)
        found.sort(key=lambda each: -each.score(size))
        del found[KEPT:]


def page(table: dict[ApiKey, dict[int, list[Found]]]) -> str:
    lines = [HEAD.format(kind=build_kind())]
    for api in SERVED:
        cells = []
        for size in SIZES:
            costs = [each.cost for each in table[api][size]]
            busy, memory, answer = (max(values) for values in zip(*costs, strict=True))
            cells.append(f"{busy / 1000:.1f} ms, {memory / 1000:.1f} MB, {answer / 1000:.1f} KB")
        lines.append(f"| {api.title} | {' | '.join(cells)} |\n")
    return "".join(lines)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--seconds", type=float, default=600, help="for the whole search")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--report", action="store_true", help="measure the known requests, search for none")
    options = words.parse_args()
    chance = random.Random(options.seed)
    table: dict[ApiKey, dict[int, list[Found]]] = {}
    with tempfile.TemporaryDirectory() as folder, Probe(Path(folder)) as probe:
        for api in SERVED:
            if options.report:
                table[api] = {
                    size: [measured(probe, api, gene, size) for gene in worst_of(api, size)] for size in SIZES
                }
            else:
                table[api] = search(probe, api, options.seconds / len(SERVED), chance)
            for size, found in table[api].items():
                if any(each.score(size) > 1 for each in found):
                    print(f"{api.title}, {size} bytes: above the bounds {bounds(size)}: {found}")
            print(api.title, "searched", flush=True)
        probe.served.stop_without_stalls()
    if not options.report:
        stored = {
            api.stem: {str(size): [each.gene.as_json() for each in found] for size, found in sizes.items()}
            for api, sizes in table.items()
        }
        lines = [f'"{stem}": {json.dumps(sizes)}' for stem, sizes in stored.items()]
        WORST.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    PAGE.write_text(page(table))
    print(f"written: {PAGE}, {WORST}")
    report_residue()


def report_residue() -> None:
    from tests.hostile.residue import all_left  # it needs this module

    above = 0
    for quota, left in all_left():
        if left.bytes > left.bound:
            above += 1
            print(f"{left.apis} of {left.user}, quota {quota}: {left.bytes} bytes stay of a connection")
    print(f"memory that stays: {above} cases above their bounds")


if __name__ == "__main__":
    main()
