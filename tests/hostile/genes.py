"""A request that asks for much with little, described by a few choices, so that a search can vary them.

One list of the request is flooded: it has as many entries as fit into the wanted size. Everything else is chosen by
kind: what names name, what numbers say. The same gene makes a request of 1 KB or of 100 KB.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from math import isqrt
from typing import Annotated, Any, Final, Self, get_args, get_origin

from ixion.language.protocol.notation import Column, Struct, StructMeta
from ixion.language.protocol.registry import ApiKey
from ixion.language.protocol.resolve import holds
from ixion.language.records.compression import Codec
from tests.hostile.inputs import asked
from tests.log.support import batch
from tests.records import forge

PATTERN: Final = "((.?){49}){50}"
TOPICS: Final = 50  # t0, t1 … that the broker has
WIDE: Final = "wide"  # one with many partitions
PARTITIONS: Final = 500

TEXTS: Final = ("same", "known", "wide", "unknown", "long", "longest", "pattern", "empty")
NUMBERS: Final = ("index", "zero", "minus", "two", "thousands", "million", "most")
SHAPES: Final = ("flat", "deep", "square")
COMPRESSED: Final = ("gzip", "snappy", "lz4", "zstd")
RECORDS: Final = ("none", "batch", "garbage", *COMPRESSED, "headers")
# What a search may not do to the broker it searches with.
ALWAYS_TRUE: Final = ("validate_only",)
ALWAYS_UNKNOWN: Final = (ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS, ApiKey.ALTER_CONFIGS)
BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
BATCH: Final = batch(b"v")
BOMB: Final = 1_000_000  # bytes that each compressed batch inflates to; gzip makes 1 KB of them


@cache
def records_of(kind: str) -> bytes:
    """Batches that are much work for their size."""
    if kind == "headers":
        return forge.batch(forge.record(headers=forge.varint(500) + b"\0\1" * 500))
    return batch(bytes(BOMB), codec=Codec[kind.upper()])


@dataclass(frozen=True, slots=True, kw_only=True)
class Gene:
    newest: bool = True  # the version
    flood: str = ""  # the path of the list that is flooded; empty: none
    shape: str = "flat"  # flat: its outer lists have one entry; deep: it has one, they have many; square: both
    text: str = "same"
    number: str = "index"
    flag: bool = True
    records: str = "batch"
    others: int = 1  # entries of the other lists; -1: null where that is allowed

    def varied(self, api: ApiKey, chance: random.Random) -> Self:
        """With one choice changed."""
        options: dict[str, tuple[Any, ...]] = {
            "newest": (True, False),
            "flood": tuple(lists_of(api)) or ("",),
            "shape": SHAPES,
            "text": TEXTS,
            "number": NUMBERS,
            "flag": (True, False),
            "records": RECORDS,
            "others": (-1, 0, 1),
        }
        name = chance.choice(sorted(options))
        return replace(self, **{name: chance.choice(options[name])})

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value != getattr(Gene(), name)}


def first_genes(api: ApiKey) -> Iterator[Gene]:
    """Where a search begins: every list flooded with every kind of name."""
    for flood in lists_of(api) or [""]:
        for text in TEXTS:
            yield Gene(flood=flood, text=text)
        for shape in SHAPES[1:]:
            yield Gene(flood=flood, shape=shape, text="unknown")
        yield Gene(flood=flood, number="million")
        yield Gene(flood=flood, text="unknown", newest=False)
    yield Gene(others=-1)
    yield Gene(others=-1, newest=False)


def lists_of(api: ApiKey) -> list[str]:
    """The paths of all lists of a request in its newest version, outer ones first."""
    return list(lists_in(api.request_table, api.newest, ""))


def lists_in(table: StructMeta, version: int, path: str) -> Iterator[str]:
    for column in table.columns:
        if holds(column.versions, version):
            annotation = without_null(column.annotation)
            here = f"{path}/{column.name}"
            if get_origin(annotation) is tuple:
                yield here
                annotation = get_args(annotation)[0]
            if isinstance(annotation, StructMeta):
                yield from lists_in(annotation, version, here)


def without_null(annotation: Any) -> Any:
    return get_args(annotation)[0] if type(None) in get_args(annotation) else annotation


class Shaper:
    """Makes the request of a gene with `count` entries in the flooded list."""

    def __init__(self, api: ApiKey, gene: Gene, count: int, ids: list[bytes], client_id: str = "x") -> None:
        self._api = api
        self._gene = gene
        self._count = count
        self._ids = ids
        self._client_id = client_id
        self._index = 0  # of the entry that is being made

    def request(self) -> bytes:
        version = self._api.newest if self._gene.newest else self._api.oldest
        return asked(int(self._api), version, self._of(self._api.request_table, version, ""), self._client_id)

    def _of(self, table: StructMeta, version: int, path: str) -> Struct:
        present = {
            column.name: self._value(column.annotation, column, version, f"{path}/{column.name}")
            for column in table.columns
            if holds(column.versions, version)
        }
        made: Struct = table.blank().replace(**present)
        return made

    def _value(self, annotation: Any, column: Column, version: int, path: str) -> Any:
        nullable = type(None) in get_args(annotation) and holds(column.nullable, version)
        annotation = without_null(annotation)
        if get_origin(annotation) is tuple:
            count = self._entries(path)
            if count < 0:
                if nullable:
                    return None
                count = 1
            made = []
            for _ in range(count):
                made.append(self._value(get_args(annotation)[0], column, version, path))
                self._index += 1
            return tuple(made)
        if isinstance(annotation, StructMeta):
            return self._of(annotation, version, path)
        assert get_origin(annotation) is Annotated
        return self._scalar(annotation.__metadata__[0].name, column.name, nullable)

    def _entries(self, path: str) -> int:
        gene = self._gene
        if path == gene.flood:
            return {"flat": self._count, "deep": 1, "square": isqrt(self._count)}[gene.shape]
        if gene.flood.startswith(path + "/"):
            return {"flat": 1, "deep": self._count, "square": isqrt(self._count)}[gene.shape]
        return gene.others

    def _scalar(self, kind: str, name: str, nullable: bool) -> Any:
        if kind in BITS:
            return self._number(name, 1 << BITS[kind] - 1)
        if kind in ("uint16", "uint32"):
            return self._index % 65_536
        if kind == "bool":
            return name in ALWAYS_TRUE or self._gene.flag
        if kind == "float64":
            return 0.0
        if kind == "uuid":
            known = self._gene.text in ("same", "known", "wide")
            return self._ids[self._index % len(self._ids)] if known else self._index.to_bytes(16, "big")
        if kind == "records":
            plain = {"none": None if nullable else b"", "batch": BATCH, "garbage": b"g" * 10}
            return plain[self._gene.records] if self._gene.records in plain else records_of(self._gene.records)
        if kind == "bytes":
            return b"\0\1\0\0\0\0\xff\xff\xff\xff"
        return self._text(name)

    def _number(self, name: str, most: int) -> int:
        if name.endswith("_ms") or name in ("min_bytes", "session_epoch", "session_id", "acks"):
            return 1  # nobody waits for long here
        if name == "replica_id":
            return -1
        chosen = {"index": self._index, "zero": 0, "minus": -1, "two": 2}.get(self._gene.number)
        if chosen is None:
            chosen = {"thousands": 5000, "million": 1_000_000, "most": most - 1}[self._gene.number]
        return min(chosen, most - 1)

    def _text(self, name: str) -> str:
        mode = self._gene.text
        if self._api in ALWAYS_UNKNOWN and mode in ("same", "known", "wide"):
            mode = "unknown"
        if mode == "empty":
            return ""
        if mode == "pattern":
            return PATTERN
        if mode == "unknown":
            return f"n{self._index}"
        if mode == "longest":  # one character takes four bytes, so all do
            return f"\N{HATCHING CHICK}{self._index:032000}"
        if mode == "long":
            return f"{self._index:0200}"
        if "group" in name:
            return "g"
        if "member" in name or "instance" in name:
            return f"m{self._index}"
        if "protocol_type" in name:
            return "consumer"
        if mode == "wide":
            return WIDE
        return "t0" if mode == "same" else f"t{self._index % TOPICS}"


def shaped(api: ApiKey, gene: Gene, size: int, ids: list[bytes], client_id: str = "x") -> bytes:
    """The largest request of the gene that is not larger than `size`; one entry, if even that is."""
    count = 1
    best = Shaper(api, gene, count, ids, client_id).request()
    while gene.flood and len(best) < size and count < 250_000:
        larger = max(count + 1, min(4 * count, count * size // len(best)))
        made = Shaper(api, gene, larger, ids, client_id).request()
        if len(made) > size * 105 // 100 or len(made) <= len(best):
            break
        count, best = larger, made
    return best
