"""`make check`: phrasings that hide the actor do not come back.

    python -m devtools.phrases           # fails if a folder has more of them than devtools/phrases.txt allows
    python -m devtools.phrases --write   # after removing some: allows no more than there are now

"Whoever waits is told the generation" leaves the reader to guess: write "a waiting member gets the generation". The
list of counts is by folder, so that a file can be split or renamed, and it may only shrink.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COUNTS = ROOT / "devtools" / "phrases.txt"
BANNED = re.compile(
    r"\b(whoever|who (has|is|was|may|must|can|gets|asks|reads|waits)|(is|are|was|were) told|what there is|"
    r"(those|one|nobody|somebody) who|nobody (is|knows|listens|may)|somebody|hears? of|has heard|"
    r"(made|written) anew|many lives|lets? go of|thrown out|takes? note of|cannot be believed|in the making|"
    r"to the byte|all the while)\b",
    re.IGNORECASE,
)


def sources() -> Iterator[Path]:
    yield from sorted((ROOT / "src").rglob("*.py"))
    own = {Path(__file__).resolve(), ROOT / "tests" / "devtools" / "test_phrases.py"}
    for folder in ("benchmarks", "devtools", "examples", "tests"):
        yield from sorted(path for path in (ROOT / folder).rglob("*.py") if path not in own)
    yield from sorted((ROOT / "docs").rglob("*.md"))
    yield from sorted(ROOT.glob("*.md"))


def folder_of(path: Path) -> str:
    """`src/ixion/broker/log` for all that is below it; `.` for the documents of the root."""
    return Path(*path.relative_to(ROOT).parent.parts[:4]).as_posix()


def found() -> dict[str, list[str]]:
    """By folder: each phrase with its place."""
    places: dict[str, list[str]] = {}
    for path in sources():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for match in BANNED.finditer(line):
                places.setdefault(folder_of(path), []).append(f"{path.relative_to(ROOT)}:{number}: {match[0]}")
    return places


def allowed() -> Counter[str]:
    rows = (line.split() for line in COUNTS.read_text().splitlines())
    return Counter({folder: int(count) for count, folder in rows})


def check() -> list[str]:
    """Every phrase of the folders that have more than they may."""
    limits = allowed()
    return [
        line
        for folder, places in found().items()
        if len(places) > limits[folder]
        for line in (f"{folder} has {len(places)} banned phrasings, {limits[folder]} are allowed:", *places)
    ]


def write() -> None:
    limits = allowed() if COUNTS.exists() else Counter({folder: len(places) for folder, places in found().items()})
    now = {folder: min(len(places), limits[folder]) for folder, places in sorted(found().items())}
    COUNTS.write_text("".join(f"{count:3} {folder}\n" for folder, count in now.items() if count))


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    elif wrong := check():
        sys.exit("\n".join([*wrong, "name the actor; see devtools/phrases.py"]))
