"""What a power failure leaves of the data of a broker. A kill leaves the page cache; a power failure does not.

The machine would boot, and the broker would see that by its boot id (`log.kept`). Here the machine runs on, so we
delete the file with the boot id. The broker then does not say that it has kept its logs.

Only the active segment of a log holds bytes that were never synced: a segment is synced when the next one begins. If
the recovery point says that even a part of the active segment was synced, it is left alone, because nothing tells which
part that was.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

from ixion.broker.log.kept import FILE_NAME as BOOT

CHECKPOINT: Final = "recovery-point-offset-checkpoint"
ZEROS: Final = 0.3  # chance that what is lost is read as zeros: the file had grown, its content had not been written


def lose_unsynced(directory: Path, chance: random.Random) -> int:
    """Cut what was not synced, from a random place on; the bytes that are lost. The broker must not run."""
    (directory / BOOT).unlink(missing_ok=True)
    synced = recovery_points(directory)
    lost = 0
    for partition in sorted(path for path in directory.iterdir() if path.is_dir()):
        segments = sorted(partition.glob("*.log"))
        if segments and synced.get(partition.name, 0) <= int(segments[-1].stem):
            lost += cut(segments[-1], chance)
    return lost


def recovery_points(directory: Path) -> dict[str, int]:
    """By the name of a partition's directory."""
    try:
        _version, _count, *lines = (directory / CHECKPOINT).read_text().splitlines()
    except FileNotFoundError:
        return {}
    found = {}
    for line in lines:
        topic, partition, offset = line.split()
        found[f"{topic}-{partition}"] = int(offset)
    return found


def cut(segment: Path, chance: random.Random) -> int:
    size = segment.stat().st_size
    kept = chance.randint(0, size)
    with segment.open("r+b") as file:
        file.truncate(kept)
        if chance.random() < ZEROS:
            file.truncate(size)
    for index in (segment.with_suffix(".index"), segment.with_suffix(".timeindex")):
        if chance.random() < 0.5:
            index.unlink(missing_ok=True)
    return size - kept
