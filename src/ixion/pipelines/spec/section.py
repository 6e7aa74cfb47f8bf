"""One table of a pipeline file, read key by key into typed values. Every error names file, line and key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NoReturn, TypeVar

from ixion.config.table import meant
from ixion.pipelines.errors import SpecError
from ixion.pipelines.spec.durations import parse_duration_ms
from ixion.pipelines.spec.lines import Path, line_of

T = TypeVar("T")
_KINDS: Final = {str: "text", int: "a whole number", bool: "true or false", list: "a list", dict: "a table"}


class Section:
    def __init__(self, file: str, lines: Mapping[Path, int], path: Path, values: Mapping[str, object]) -> None:
        self.path: Final = path
        self._file: Final = file
        self._lines: Final = lines
        self._values: Final = values

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def names(self) -> list[str]:
        return list(self._values)

    def fail(self, message: str, name: str | int | None = None, hint: str = "") -> NoReturn:
        path = self.path if name is None else (*self.path, name)
        line = line_of(self._lines, path)
        raise SpecError(message, hint=hint, where=f"{self._file}:{line}" if line else self._file)

    def only(self, *known: str) -> None:
        """Refuse every key that is not KNOWN. Call it first, so that a misspelt key is not reported as missing."""
        for name in self._values:
            if name not in known:
                self.fail(f"{self.label(name)} is not known here{meant(name, known, 0.6)}", name, _list("known", known))

    def label(self, name: str) -> str:
        """The name of a key in messages: source.topics, sinks[2].path."""
        text = ""
        for part in (*self.path, name):
            text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
        return text.removeprefix(".")

    def text(self, name: str, default: str | None = None) -> str:
        value = self._get(name, str, default)
        if not value and default is None:
            self.fail(f"{self.label(name)} is empty", name)
        return value

    def optional_text(self, name: str) -> str | None:
        return self.text(name) if name in self._values else None

    def flag(self, name: str, default: bool) -> bool:
        return self._get(name, bool, default)

    def number(self, name: str, least: int = 1) -> int | None:
        if name not in self._values:
            return None
        value = self._get(name, int)
        if value < least:
            self.fail(f"{self.label(name)} is {value}; it must be at least {least}", name)
        return value

    def choice(self, name: str, allowed: Sequence[str], default: str | None = None) -> str:
        value = self.text(name, default)
        if value not in allowed:
            self.fail(f"{self.label(name)} is {value!r}{meant(value, allowed, 0.6)}", name, _list("allowed", allowed))
        return value

    def texts(self, name: str, allowed: Sequence[str] | None = None) -> tuple[str, ...]:
        """A list of texts; a single text counts as a list of one."""
        value = self._values.get(name, [])
        items = [value] if isinstance(value, str) else self._get(name, list, [])
        for item in items:
            if not isinstance(item, str) or not item:
                self.fail(f"{self.label(name)} holds {item!r}; it must hold names", name)
            if allowed is not None and item not in allowed:
                message = f"{self.label(name)} holds {item!r}{meant(item, allowed, 0.6)}"
                self.fail(message, name, _list("allowed", allowed))
        return tuple(items)

    def text_map(self, name: str, *, leave: Sequence[str] = ()) -> dict[str, str]:
        """A table whose values become text, like the options of Spark and Kafka; without the keys LEAVE."""
        section = self.section(name)
        return {} if section is None else {key: section.scalar(key) for key in section.names() if key not in leave}

    def scalar(self, name: str) -> str:
        value = self._values[name]
        if isinstance(value, bool):
            return "true" if value else "false"
        if not isinstance(value, (str, int, float)):
            self.fail(f"{self.label(name)} is {_kind(value)}; it must be a text or a number", name)
        return str(value)

    def duration_ms(self, name: str) -> int | None:
        if name not in self._values:
            return None
        text = self.text(name)
        milliseconds = parse_duration_ms(text)
        if milliseconds is None:
            message = f'{self.label(name)} is {text!r}; write a time such as "500ms", "30s", "10 minutes" or "7 days"'
            self.fail(message, name)
        return milliseconds

    def section(self, name: str) -> Section | None:
        if name not in self._values:
            return None
        return Section(self._file, self._lines, (*self.path, name), self._get(name, dict))

    def needed_section(self, name: str, hint: str) -> Section:
        section = self.section(name)
        if section is None:
            self.fail(f"there is no [{self.label(name)}]", hint=hint)
        return section

    def sections(self, name: str) -> list[Section]:
        """An array of tables: [[NAME]]."""
        if isinstance(self._values.get(name), dict):
            label = self.label(name)
            self.fail(f"write [[{label}]] instead of [{label}]: there can be several", name)
        found = self._get(name, list, [])
        sections = []
        for number, item in enumerate(found):
            if not isinstance(item, dict):
                self.fail(f"{self.label(name)} holds {item!r}; write each as [[{self.label(name)}]]", name)
            sections.append(Section(self._file, self._lines, (*self.path, name, number), item))
        return sections

    def raw(self, name: str) -> object:
        return self._values.get(name)

    def _get(self, name: str, kind: type[T], default: T | None = None) -> T:
        value = self._values.get(name, default)
        if value is None:
            self.fail(f"{self.label(name)} is missing")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.fail(f"{self.label(name)} is {_kind(value)}; it must be {_KINDS[kind]}", name)
        return value


def _kind(value: object) -> str:
    return next((name for kind, name in _KINDS.items() if type(value) is kind), repr(value))


def _list(word: str, names: Iterable[str]) -> str:
    return f"{word}: {', '.join(names)}"
