"""Frames that real clients and Kafka 4.3 exchanged; `python -m devtools.record_frames` records them anew."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "captures"


class Capture(NamedTuple):
    client: str
    direction: str
    key: int
    version: int
    frame: bytes


def captures() -> list[Capture]:
    found = []
    for file in sorted(FOLDER.glob("*.txt")):
        for line in file.read_text().splitlines():
            direction, key, version, frame = line.split()
            found.append(Capture(file.stem, direction, int(key), int(version), bytes.fromhex(frame)))
    return found
