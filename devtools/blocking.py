"""Makes the blocking faces of our clients from those on asyncio, where both differ by `await` only.

A person writes such a method once, between two marks in a file of `ixion/clients/aio`. This writes it, without `async`
and `await`, between the marks of the blocking file. What differs (how to wait, which thread or task may call) is
written by hand in both files, outside of the marks and under the same names: `_lock`, `_engine.wait`, `_entered`.

python -m devtools.blocking [--check]     # --check writes nothing and fails if a blocking face is stale
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from devtools.cache import CHECKOUT

CLIENTS = CHECKOUT / "src" / "ixion" / "clients"
FACES = {  # the blocking file: the one on asyncio
    "producer.py": "aio/producer.py",
    "transaction.py": "aio/transaction.py",
    "consumer/consumer.py": "aio/consumer.py",
    "share/consumer.py": "aio/share.py",
    "admin/admin.py": "aio/admin.py",
}
SOURCE = re.compile(r"^ *# The blocking face is made from here on [^\n]*…\n(.*?)^ *# … to here\.\n", re.S | re.M)
TARGET = re.compile(
    r"(^ *# Made from aio/\S+ by devtools\.blocking, from here on …\n)(.*?)(^ *# … to here\.\n)", re.S | re.M
)
WORDS = (
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bawaited\(", "waited("),
    (r"for (\w+) in (.+):\n +yield \1\n", r"yield from \2\n"),  # not allowed in an async def
    (r"\b__a(enter|exit|iter)__", r"__\1__"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAioTransactionBlock\b", "TransactionBlock"),
    (r"\bixion\.clients\.aio\.", "ixion.clients."),
)


def blocking(text: str) -> str:
    """The same code without await."""
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    return text


def made(target: str, source: str) -> str:
    """The text of a blocking file, with the code between its marks made from the other face."""
    parts = [blocking(part) for part in SOURCE.findall(source)]
    places = TARGET.findall(target)
    if not parts or len(parts) != len(places):
        raise ValueError(f"{len(parts)} parts to be made, and {len(places)} places for them")
    left = iter(parts)
    return formatted(TARGET.sub(lambda place: place[1] + next(left) + place[3], target))


def formatted(text: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    command: list[str | Path] = [ruff, "format", "--stdin-filename", CLIENTS / "face.py", "-"]
    return subprocess.run(command, input=text, capture_output=True, encoding="utf-8", check=True).stdout


def main(words: list[str]) -> int:
    stale = []
    for target, source in FACES.items():
        path = CLIENTS / target
        text = made(path.read_text(), (CLIENTS / source).read_text())
        if text != path.read_text():
            stale.append(target)
            if "--check" not in words:
                path.write_text(text)
    if stale and "--check" in words:
        print(f"run python -m devtools.blocking: {', '.join(stale)} differ from the faces on asyncio", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
