"""Apache Kafka itself as the judge of our codec: a Java program that reads, shows and writes what we wrote."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devtools.jvm import QUICK, compile_java, java_command
from devtools.parts import need
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.resolve import holds

SOURCE = Path(__file__).parent / "java" / "MessageOracle.java"


class JavaOracle:
    """One Java process, asked line by line. Ends with the `with` block."""

    def __init__(self, jars: str) -> None:
        path = need(jars)
        options = [*QUICK, "-Xmx128m"]
        command = java_command("MessageOracle", classpath=f"{compile_java(SOURCE, path)}:{path}", options=options)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate(timeout=30)

    def ask(self, java_class: str, version: int, data: bytes) -> tuple[bytes, Any]:
        """What Kafka writes after reading `data`, and what it understood."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{java_class} {version} {data.hex()}\n")
        self._process.stdin.flush()
        written, _, shown = self._process.stdout.readline().partition(" ")
        assert written != "!", shown
        return bytes.fromhex(written), json.loads(shown)


def as_shown(value: Any, version: int) -> Any:
    """A value of ours in the form in which Kafka shows its own, names without case and dashes."""
    match value:
        case Struct():
            present = [column for column in type(value).columns if holds(column.versions, version)]
            return {
                plain(column.name): as_shown(held(value, column.name), version)
                for column in present
                if column.tag < 0 or getattr(value, column.name) != column.default
            }
        case tuple():
            return [as_shown(item, version) for item in value]
        case bytes():
            return value.hex()
        case _:
            return value


def held(value: Struct, name: str) -> Any:
    """Kafka shows record data as empty, whatever it holds."""
    content = getattr(value, name)
    return b"" if name == "records" and content is not None else content


def as_ours(shown: Any, value: Any) -> Any:
    """What Kafka shows, with names and bytes in the form of `as_shown`; `value` is ours, to tell bytes from text."""
    match shown:
        case dict():
            ours = {plain(column.name): getattr(value, column.name) for column in type(value).columns}
            return {plain(name): as_ours(item, ours.get(plain(name))) for name, item in shown.items()}
        case list() if isinstance(value, tuple) and len(value) == len(shown):
            return [as_ours(item, mine) for item, mine in zip(shown, value, strict=True)]
        case str() if isinstance(value, bytes):
            # ids come in the URL-safe alphabet without padding, other bytes in the plain one with it
            return base64.b64decode(shown + "=" * (-len(shown) % 4), altchars=b"-_" if len(shown) == 22 else None).hex()
        case _:
            return shown


def plain(name: str) -> str:
    return name.replace("_", "").lower()
