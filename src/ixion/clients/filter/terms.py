"""The parts of a compiled filter: each says whether a record fits. Where a path finds several values, one must fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ixion.clients.filter.tokens import FilterError
from ixion.clients.filter.values import Path, Scope, as_bytes, has, is_equal, order

PATTERN_BYTES: Final = 256 << 10  # of a compiled regular expression
Term = Callable[[Scope], bool]


class Literal(NamedTuple):
    value: Any


Operand = Path | Literal


def values_of(operand: Operand, scope: Scope) -> list[Any]:
    return [operand.value] if isinstance(operand, Literal) else operand.find(scope)


def both(terms: list[Term]) -> Term:
    return lambda scope: all(term(scope) for term in terms)


def either(terms: list[Term]) -> Term:
    return lambda scope: any(term(scope) for term in terms)


def negated(term: Term) -> Term:
    return lambda scope: not term(scope)


def is_there(operand: Operand) -> Term:
    """A path alone: there is something, and it is not false."""
    return lambda scope: any(each is not None and each is not False for each in values_of(operand, scope))


def one_of(operand: Operand, wanted: list[Any]) -> Term:
    return lambda scope: any(is_equal(each, value) for each in values_of(operand, scope) for value in wanted)


COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": is_equal,
    "<": lambda one, other: (order(one, other) or 0) < 0,
    ">": lambda one, other: (order(one, other) or 0) > 0,
    "<=": lambda one, other: (place := order(one, other)) is not None and place <= 0,
    ">=": lambda one, other: (place := order(one, other)) is not None and place >= 0,
    "contains": has,
    "startswith": lambda one, other: begins(one, other),
    "endswith": lambda one, other: ends(one, other),
}


def begins(whole: Any, part: Any) -> bool:
    mine, others = as_bytes(whole), as_bytes(part)
    return mine is not None and others is not None and mine.startswith(others)


def ends(whole: Any, part: Any) -> bool:
    mine, others = as_bytes(whole), as_bytes(part)
    return mine is not None and others is not None and mine.endswith(others)


def compared(left: Operand, sign: str, right: Operand) -> Term:
    """`!=` is the opposite of `==`: of several values none may be equal."""
    if sign == "!=":
        return negated(compared(left, "==", right))
    fits = COMPARISONS[sign]
    # The right side counts with its first value only, so that two paths with [*] do not multiply.
    return lambda scope: any(
        fits(each, other) for other in values_of(right, scope)[:1] for each in values_of(left, scope)
    )


def matching(operand: Operand, pattern: str) -> Term:
    import re2

    options = re2.Options()
    options.max_mem = PATTERN_BYTES
    options.never_capture = True
    options.log_errors = False
    try:
        compiled = re2.compile(pattern.encode(), options)
    except (UnicodeEncodeError, re2.error) as error:
        reason = error.args[0]
        said = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise FilterError(f"{pattern[:100]!r} is not a regular expression of RE2: {said}") from None
    search, size = compiled.search, int(compiled.programsize)

    def fits(value: Any, scope: Scope) -> bool:
        data = as_bytes(value)
        return data is not None and scope.may_match(size * len(data)) and search(data) is not None

    return lambda scope: any(fits(each, scope) for each in values_of(operand, scope))
