"""Reads single settings of a client, each with a name, a default and allowed values. Errors name the setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ixion.clients.security import ELSEWHERE

MAX_I32: Final = 2**31 - 1
MAX_I64: Final = 2**63 - 1


class Options:
    """The given settings by name; each is read once, with its default."""

    def __init__(self, given: Mapping[str, Any], known: Sequence[str] | Any) -> None:
        self._given = given
        for name in given:
            if name not in known:
                raise TypeError(f"unknown setting {name!r}{did_you_mean(name, list(known))}")

    def choice(self, name: str, default: object, choices: Mapping[object, Any]) -> Any:
        value = self._given.get(name, default)
        if isinstance(value, bool) or not isinstance(value, str | int) or value not in choices:
            allowed = ", ".join(repr(choice) for choice in choices if isinstance(choice, str))
            raise self._wrong(name, f"allowed are {allowed}")
        return choices[value]

    def flag(self, name: str, default: bool) -> bool:
        value = self._given.get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, "allowed are True and False")
        return value

    def whole(self, name: str, default: int, least: int, most: int = MAX_I32) -> int:
        value = self._given.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._wrong(name, f"allowed are whole numbers from {least} to {most}")
        return value

    def words(self, name: str, default: Sequence[str], allowed: Sequence[str]) -> tuple[str, ...]:
        value = self._given.get(name, default)
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        if not is_list or not value or any(word not in allowed for word in value):
            raise self._wrong(name, f"allowed is a list of {', '.join(map(repr, allowed))}")
        return tuple(value)

    def level(self, name: str) -> int | None:
        value = self._given.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise self._wrong(name, "allowed are whole numbers and None")
        return value

    def seconds(self, name: str, default_ms: float, least_ms: float = 0, most_ms: int = MAX_I64) -> float:
        value = self._given.get(name, default_ms)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least_ms <= value <= most_ms:
            upper = "on" if most_ms == MAX_I64 else f"to {most_ms}"
            raise self._wrong(name, f"allowed are numbers from {least_ms:g} {upper}")
        return value / 1000

    def text(self, name: str, default: str) -> str:
        value = self._given.get(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "allowed is text")
        return value

    def text_or_none(self, name: str) -> str | None:
        value = self._given.get(name)
        if value is not None and (not isinstance(value, str) or not value):
            raise self._wrong(name, "allowed are text and None")
        return value

    def function(self, name: str) -> Callable[..., Any] | None:
        value = self._given.get(name)
        if value is not None and not callable(value):
            raise self._wrong(name, "allowed are functions and None")
        return value

    def _wrong(self, name: str, allowed: str) -> ValueError:
        return ValueError(f"{name} is {self._given.get(name)!r}; {allowed}")


def did_you_mean(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # only for a misspelt name

    from ixion.clients.refused import why_refused

    if name.replace(".", "_") in known:
        return f"; write {name.replace('.', '_')!r}"
    if name in ELSEWHERE:
        return f"; here it is {ELSEWHERE[name]}"
    reason = why_refused(name)
    if reason is not None:
        return f"; {reason}"
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
