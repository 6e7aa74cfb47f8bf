"""A strict reader of Prometheus' text format: what it does not like, a scraper may not like either."""

from __future__ import annotations

import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}

Key = tuple[str, frozenset[tuple[str, str]]]


def parse(text: str) -> dict[Key, float]:
    """(name, labels) -> value. AssertionError at the first thing that is not as it should be."""
    assert text.endswith("\n")
    found: dict[Key, float] = {}
    families: dict[str, str] = {}
    family = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split(" ")[2]
            assert NAME.fullmatch(family), line
            assert family not in families, f"{family} twice"
            assert len(line.split(" ", 3)[3]) > 0, line
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family, line
            assert (kind == "counter") == family.endswith("_total"), line
            families[name] = kind
        else:
            matched = SAMPLE.fullmatch(line)
            assert matched, line
            name, inside, value = matched.groups()
            assert name in [family + suffix for suffix in SUFFIXES[families[family]]], line
            said_labels: dict[str, str] = dict(LABEL.findall(inside or ""))
            assert ",".join(f'{label}="{said}"' for label, said in said_labels.items()) == (inside or ""), line
            key = (name, frozenset(said_labels.items()))
            assert key not in found, f"{line} twice"
            found[key] = float(value)
    for (name, labels), value in found.items():
        if name.endswith("_count"):
            assert found[(name[:-6] + "_bucket", labels | {("le", "+Inf")})] == value
            below = [
                (float(dict(others)["le"]), count)
                for (other, others), count in found.items()
                if other == name[:-6] + "_bucket" and labels < others
            ]
            assert [count for _, count in below] == [count for _, count in sorted(below)] == sorted(c for _, c in below)
    return found


def value(found: dict[Key, float], name: str, **labels: object) -> float:
    return found[(name, frozenset((label, str(said)) for label, said in labels.items()))]
