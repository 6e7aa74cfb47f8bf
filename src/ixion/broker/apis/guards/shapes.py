"""Guards and amendments that several APIs share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from ixion.broker.acl.numbers import GROUP, READ, TOPIC
from ixion.broker.apis.call import Call
from ixion.broker.apis.guards.guard import Guard
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps, map_steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

T = TypeVar("T")

Amend = Callable[[Struct], Steps[Struct]]

NO_TOPIC: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_GROUP: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
NO_ID: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
NO_CLUSTER: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


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


def refused_with(operation: int, answer: Struct) -> Guard:
    """The whole request needs `operation` on the cluster; the refusal is always the same response."""

    def refuse(_request: Any, _version: int) -> Steps[Struct]:
        yield
        return answer

    return in_cluster(operation, refuse)


def in_group(refuse: Callable[[ErrorCode, int], Struct]) -> Guard:
    """Members need READ on their group. `refuse(code, version)` makes the response of a refusal."""

    def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
        group_id: str = cast(Any, call.body).group_id
        yield
        return None if rights.may(READ, GROUP, group_id) else refuse(NO_GROUP, call.version)

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
