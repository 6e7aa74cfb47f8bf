"""Guards and amendments that several APIs share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ixion.acl.numbers import TOPIC
from ixion.acl.rights import Rights
from ixion.apis.call import Call
from ixion.apis.guards.guard import Guard
from ixion.protocol.notation import Struct
from ixion.timer.turns import Steps, map_steps

T = TypeVar("T")

Amend = Callable[[Struct], Steps[Struct]]


def appended(field: str, refused: Iterable[Struct]) -> Amend:
    """Adds `refused` to the end of a list in the response."""

    def amend(body: Struct) -> Steps[Struct]:
        yield
        return body.replace(**{field: (*getattr(body, field), *refused)})

    return amend


def filtered(field: str, keep: Callable[[Any], bool]) -> Amend:
    """Removes the entries from a list in the response that the client may not see."""

    def amend(body: Struct) -> Steps[Struct]:
        kept: list[Any] = []
        for entry in getattr(body, field):
            if keep(entry):
                kept.append(entry)
            yield
        return body.replace(**{field: tuple(kept)})

    return amend


def sorted_out(entries: Iterable[T], keep: Callable[[T], bool]) -> Steps[tuple[list[T], list[T]]]:
    """The entries for which `keep` is true, and the others."""
    kept: list[T] = []
    others: list[T] = []
    for entry in entries:
        (kept if keep(entry) else others).append(entry)
        yield
    return kept, others


def in_cluster(operation: int, refuse: Callable[[Any, int], Steps[Struct]]) -> Guard:
    """The whole request needs `operation` on the cluster. `refuse(request, version)` makes the refusal."""

    def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
        if rights.may_in_cluster(operation):
            return None
        answer = yield from refuse(call.body, call.version)
        return answer

    return guard


def on_topics(
    operation: int,
    line: Callable[[Any], Any],
    answer: Callable[[Any, tuple[Any, ...]], Struct],
    *,
    name: str = "name",
    partitions: str = "partitions",
    asked: str = "topics",
    answered: str = "topics",
) -> Guard:
    """Each topic needs `operation`; topics without it get a refusal, made by `line` for each partition."""

    def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
        yield from trim_topics(
            call,
            lambda topic: rights.may(operation, TOPIC, getattr(topic, name)),
            line,
            answer,
            partitions,
            asked,
            answered,
        )
        return None

    return guard


def trim_topics(
    call: Call,
    keep: Callable[[Any], bool],
    line: Callable[[Any], Any],
    answer: Callable[[Any, tuple[Any, ...]], Struct],
    partitions: str = "partitions",
    asked: str = "topics",
    answered: str = "topics",
) -> Steps[None]:
    kept, others = yield from sorted_out(getattr(call.body, asked), keep)
    if others:
        refused = yield from refused_topics(others, line, answer, partitions)
        call.narrow(call.body.replace(**{asked: tuple(kept)}))
        call.amend = appended(answered, refused)


def refused_topics(
    topics: Iterable[Any],
    line: Callable[[Any], Any],
    answer: Callable[[Any, tuple[Any, ...]], Struct],
    partitions: str = "partitions",
) -> Steps[list[Struct]]:
    refused: list[Struct] = []
    for topic in topics:
        lines = yield from map_steps(line, getattr(topic, partitions))
        refused.append(answer(topic, tuple(lines)))
        yield
    return refused
