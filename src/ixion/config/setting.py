"""Defines settings: one object per setting has all facts about it, and is the key to read its value.

    NUM_PARTITIONS = integer("num.partitions", 1, least=1, doc="default number of partitions of a topic")

    config[NUM_PARTITIONS] + 1      # an int, also for the type checker
    NUM_PARTITIONS.parse("0")       # InvalidSettingError: num.partitions is '0', but must be a whole number, at least 1

Names, units (bytes, milliseconds), defaults and limits are those of Apache Kafka 3.9; where a default of ours
differs on purpose, its line says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, Final, Generic, TypeVar

from ixion.config.errors import InvalidSettingError

T = TypeVar("T")

INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1


class Kind(IntEnum):
    """The numbers are those of the DescribeConfigs response."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Scope(Enum):
    """Whether and how a broker setting may change while the broker runs."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"  # only for one broker
    CLUSTER_WIDE = "cluster-wide"  # for all brokers, or for one


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Setting(Generic[T]):
    """One setting by Kafka's name."""

    name: str
    kind: Kind
    default: T | None  # None: not set, or derived from `fallbacks`
    doc: str
    scope: Scope = Scope.READ_ONLY
    topic: str = ""  # the topic-level setting whose default this is
    topic_least: float | None = None  # the minimum of the topic-level setting, if it is not `least`
    least: float | None = None
    most: float | None = None
    also: int | None = None  # one allowed value outside the range
    choices: tuple[str, ...] = ()
    # If this one is not set: the first of these that is set, times its factor, which converts the unit.
    fallbacks: tuple[tuple[Setting[Any], int], ...] = ()

    @property
    def sensitive(self) -> bool:
        return self.kind is Kind.PASSWORD

    @property
    def allowed(self) -> str:
        """The allowed values, as text."""
        if self.choices:
            one = "a list of" if self.kind is Kind.LIST else "one of"
            return f"{one} {', '.join(self.choices)}"
        words = _WORDS[self.kind]
        low, high = self.least, self.most
        if low is not None and high is not None:
            words += f", {low} to {high}"
        elif low is not None:
            words += f", at least {low}"
        if self.also is not None:
            words += f", or {self.also}"
        return words

    def parse(self, text: str) -> T:
        trimmed = text.strip()
        try:
            value = _PARSERS[self.kind](trimmed)
        except ValueError:
            raise self.refusal(text) from None
        if not self.accepts(value):
            raise self.refusal(text)
        return value  # type: ignore[no-any-return] # the constructors below pair T and kind

    def refusal(self, text: str) -> InvalidSettingError:
        return InvalidSettingError(self.name, "[hidden]" if self.sensitive else text, self.allowed)

    def accepts(self, value: Any) -> bool:
        """Whether a value of the right type is within the limits."""
        if self.choices:
            return all(item in self.choices for item in (value if self.kind is Kind.LIST else (value,)))
        if self.also is not None and value == self.also:
            return True
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


def text_of(value: Any) -> str | None:
    """A value in Kafka's form; None is no value."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case float():
            return repr(value).replace("e+", "E")  # Java's form: 1.7976931348623157E308
        case _:
            return str(value)


def flag(name: str, default: bool, **facts: Any) -> Setting[bool]:
    return Setting(name=name, kind=Kind.BOOLEAN, default=default, **facts)


def optional_flag(name: str, **facts: Any) -> Setting[bool | None]:
    return Setting(name=name, kind=Kind.BOOLEAN, default=None, **facts)


def string(name: str, default: str | None, **facts: Any) -> Setting[str]:
    """A setting without a default needs fallbacks."""
    return Setting(name=name, kind=Kind.STRING, default=default, **facts)


def optional_string(name: str, **facts: Any) -> Setting[str | None]:
    return Setting(name=name, kind=Kind.STRING, default=None, **facts)


def integer(name: str, default: int, kind: Kind = Kind.INT, **facts: Any) -> Setting[int]:
    return Setting(name=name, kind=kind, default=default, **facts)


def long(name: str, default: int | None, **facts: Any) -> Setting[int]:
    """64 bits. A setting without a default needs fallbacks."""
    return Setting(name=name, kind=Kind.LONG, default=default, **facts)


def optional_integer(name: str, **facts: Any) -> Setting[int | None]:
    return Setting(name=name, kind=Kind.INT, default=None, **facts)


def double(name: str, default: float, **facts: Any) -> Setting[float]:
    return Setting(name=name, kind=Kind.DOUBLE, default=default, **facts)


def words(name: str, default: tuple[str, ...], **facts: Any) -> Setting[tuple[str, ...]]:
    """A list, separated by commas."""
    return Setting(name=name, kind=Kind.LIST, default=default, **facts)


def optional_words(name: str, **facts: Any) -> Setting[tuple[str, ...] | None]:
    return Setting(name=name, kind=Kind.LIST, default=None, **facts)


def secret(name: str, **facts: Any) -> Setting[str | None]:
    """A value that is never shown."""
    return Setting(name=name, kind=Kind.PASSWORD, default=None, **facts)


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError
    return lowered == "true"


def _whole(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or "_" in text:  # int() accepts more than Java
            raise ValueError
        value = int(text)
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ValueError
        return value

    return parse


def _double(text: str) -> float:
    if "_" in text:
        raise ValueError
    value = float(text)
    if value != value:
        raise ValueError
    return value


def _list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",")) if text else ()


_PARSERS: Final[dict[Kind, Callable[[str], Any]]] = {
    Kind.BOOLEAN: _boolean,
    Kind.STRING: str,
    Kind.INT: _whole(32),
    Kind.SHORT: _whole(16),
    Kind.LONG: _whole(64),
    Kind.DOUBLE: _double,
    Kind.LIST: _list,
    Kind.CLASS: str,
    Kind.PASSWORD: str,
}
_WORDS: Final = {
    Kind.BOOLEAN: "true or false",
    Kind.STRING: "any text",
    Kind.INT: "a whole number of 32 bits",
    Kind.SHORT: "a whole number of 16 bits",
    Kind.LONG: "a whole number of 64 bits",
    Kind.DOUBLE: "a number",
    Kind.LIST: "a list, separated by commas",
    Kind.CLASS: "a class name",
    Kind.PASSWORD: "any text",
}
