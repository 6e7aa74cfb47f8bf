"""Removes repeated entries from the lists of a request before its handler sees them.

A request may name one partition a hundred thousand times. If a handler looked it up, read it and responded for it as
often, a small request would hold up every client. So the module of each API has a rule for every list (`REPEATS`):
which fields are the key of an entry, and what happens to entries with the same key:

- `once`: the last entry stays, in the position of the first, as in a map. Lists inside such entries are joined:
  `t: [0, 1], t: [1, 2]` becomes `t: [0, 1, 2]`. Null means everything, so a join with null is null.
- `first`: the first entry stays, because Kafka uses that one.
- `twice`: two entries stay. Kafka refuses repeats in these APIs, and two are enough for the handler to notice.
- `as_sent`: the list does not change, because the response goes by position or because each entry has data.

A request without repeats, the normal case, is passed on unchanged.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps, finish

T = TypeVar("T", bound=Struct)

AS_SENT: Final = 0
ONCE: Final = 1
TWICE: Final = 2
FIRST: Final = 3

STEP: Final = 256  # entries per step, some 50 µs


class Rule:
    """The rule for repeats in one list, and in the lists inside its entries."""

    def __init__(self, kept: int, key: tuple[str, ...], inner: Mapping[str, Rule]) -> None:
        self.kept: Final = kept
        self.key: Final = key  # the fields by which entries are compared; none: the entry itself
        self.inner: Final = dict(inner)

    def key_of(self, entry: Any) -> object:
        fields = self.key
        if not fields:
            return entry
        if len(fields) == 1:
            return getattr(entry, fields[0])
        return tuple([getattr(entry, field) for field in fields])

    def has_repeats(self, entries: tuple[Any, ...]) -> bool:
        if not self.key:
            return len(set(entries)) < len(entries)
        return len({self.key_of(entry) for entry in entries}) < len(entries)


class Either(Rule):
    """The key is the first of the fields that is set, neither null nor the zero id; the others do not count."""

    def key_of(self, entry: Any) -> object:
        for field in self.key:
            value = getattr(entry, field)
            if value is not None and value != ZERO_ID:
                return (field, value)
        return None


def reduce(body: T, rules: dict[str, Rule]) -> T:
    """`body` without repeats in the lists named by `rules`; `body` itself if there are none."""
    changes: dict[str, object] | None = None
    for field, rule in rules.items():
        entries: tuple[Any, ...] | None = getattr(body, field)
        if entries:
            kept = reduced(entries, rule)
            if kept is not entries:
                if changes is None:
                    changes = {}
                changes[field] = kept
    return body if changes is None else body.replace(**changes)


def reduced(entries: tuple[Any, ...], rule: Rule) -> tuple[Any, ...]:
    kept = entries
    if len(entries) > 1 and rule.kept != AS_SENT and rule.has_repeats(entries):
        kept = finish(distinct(entries, rule))
    if rule.inner:
        changed: dict[int, Any] = {}
        for place, entry in enumerate(kept):
            after = reduce(entry, rule.inner)
            if after is not entry:
                changed[place] = after
        kept = exchanged(kept, changed)
    return kept


def reduce_steps(body: T, rules: dict[str, Rule]) -> Steps[T]:
    """As `reduce`, in steps (`ixion.timer.turns`), for a request with very many elements."""
    changes: dict[str, object] = {}
    for field, rule in rules.items():
        entries: tuple[Any, ...] | None = getattr(body, field)
        if entries:
            kept = entries
            if len(entries) > 1 and rule.kept != AS_SENT:
                kept = yield from distinct(entries, rule)
            if rule.inner:
                kept = yield from reduced_within(kept, rule.inner)
            if kept is not entries:
                changes[field] = kept
    return body.replace(**changes) if changes else body


def reduced_within(entries: tuple[Any, ...], inner: dict[str, Rule]) -> Steps[tuple[Any, ...]]:
    changed: dict[int, Any] = {}
    for place, entry in enumerate(entries):
        if max(len(getattr(entry, field) or ()) for field in inner) > STEP:
            after = yield from reduce_steps(entry, inner)
        else:
            after = reduce(entry, inner)
        if after is not entry:
            changed[place] = after
        yield
    return exchanged(entries, changed)


def exchanged(entries: tuple[Any, ...], changed: dict[int, Any]) -> tuple[Any, ...]:
    if not changed:
        return entries
    return tuple([changed.get(place, entry) for place, entry in enumerate(entries)])


def distinct(entries: tuple[Any, ...], rule: Rule) -> Steps[tuple[Any, ...]]:
    """The entries that stay under the rule; `entries` itself if there are no repeats."""
    alike: dict[object, Any] = {}  # key -> the entry that stays, or all entries that are joined
    second: list[tuple[int, Any]] = []  # for `twice`: the number of first entries before it, and the second entry
    joins = rule.kept == ONCE and len(rule.inner) > 0
    repeated: set[object] = set()
    for place, entry in enumerate(entries):
        key = rule.key_of(entry)
        if key not in alike:
            alike[key] = [entry] if joins else entry
        elif joins:
            alike[key].append(entry)
            repeated.add(key)
        elif rule.kept == ONCE:
            alike[key] = entry
            repeated.add(key)
        elif key not in repeated:
            repeated.add(key)
            if rule.kept == TWICE:
                second.append((len(alike), entry))
        if place % STEP == STEP - 1:
            yield
    if not repeated:
        return entries
    if joins:
        joined: list[Any] = []
        for group in alike.values():
            joined.append(join(group, rule.inner) if len(group) > 1 else group[0])
            if len(joined) % STEP == 0:
                yield
        return tuple(joined)
    return with_second(list(alike.values()), second)


def with_second(firsts: list[Any], second: list[tuple[int, Any]]) -> tuple[Any, ...]:
    """All entries in the order of the request: each second entry after the first entries that came before it."""
    kept: list[Any] = []
    begin = 0
    for end, entry in second:
        kept += firsts[begin:end]
        kept.append(entry)
        begin = end
    return tuple(kept + firsts[begin:])


def join(entries: list[Any], inner: dict[str, Rule]) -> Any:
    """The last entry, with the lists of all of them."""
    lists: dict[str, tuple[Any, ...] | None] = {}
    for field in inner:
        parts = [getattr(entry, field) for entry in entries]
        lists[field] = None if None in parts else tuple([each for part in parts for each in part])
    return entries[-1].replace(**lists)
