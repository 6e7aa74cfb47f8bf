"""Kafka's checkpoint files: a version line, a count line, then one entry per line.

    0                          0
    2                          1
    orders 0 1523              5 1400
    orders 1 88                (an epoch checkpoint: epoch, start offset)

A log directory has four, which map partitions to offsets; a partition has one, which maps leader epochs to offsets. A
file is replaced as a whole, so a crash leaves the old one or the new one.
"""

from __future__ import annotations

from typing import Final

from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.files import Files
from ixion.language.model.topic_partition import TopicPartition

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"

_VERSION: Final = "0"

Offsets = dict[TopicPartition, int]


def read_offsets(files: Files, path: str) -> Offsets:
    """Partition -> offset; empty if there is no file. A corrupt file raises CorruptFileError."""
    offsets: Offsets = {}
    for number, line in enumerate(_read_lines(files, path)):
        fields = line.split(" ")
        if len(fields) != 3:
            raise CorruptFileError(path, f"entry {number} has {len(fields)} fields instead of 3: {line!r}")
        partition = _whole(path, fields[1])
        offsets[fields[0], partition] = _whole(path, fields[2])
    return offsets


def write_offsets(files: Files, path: str, offsets: Offsets) -> None:
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())]
    files.replace_content(path, _content(lines), True)


def read_epochs(files: Files, path: str) -> list[tuple[int, int]]:
    """(epoch, start offset), both rising."""
    entries: list[tuple[int, int]] = []
    for number, line in enumerate(_read_lines(files, path)):
        fields = line.split(" ")
        if len(fields) != 2:
            raise CorruptFileError(path, f"entry {number} has {len(fields)} fields instead of 2: {line!r}")
        entry = (_whole(path, fields[0]), _whole(path, fields[1]))
        if entries and (entry[0] <= entries[-1][0] or entry[1] < entries[-1][1]):
            raise CorruptFileError(path, f"epoch {entry[0]} at {entry[1]} follows epoch {entries[-1][0]}")
        entries.append(entry)
    return entries


def write_epochs(files: Files, path: str, entries: list[tuple[int, int]]) -> None:
    files.replace_content(path, _content([f"{epoch} {start}" for epoch, start in entries]), False)


def _content(lines: list[str]) -> bytes:
    return "".join(line + "\n" for line in [_VERSION, str(len(lines)), *lines]).encode()


def _read_lines(files: Files, path: str) -> list[str]:
    try:
        lines = files.read_file(path).decode("utf-8").split("\n")
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise CorruptFileError(path, f"it is not text: {error}") from error
    if lines[0] != _VERSION:
        raise CorruptFileError(path, f"version {lines[0]!r} is unknown")
    if len(lines) < 2:
        raise CorruptFileError(path, "the number of entries is missing")
    count = _whole(path, lines[1])
    entries = lines[2:-1] if lines[-1] == "" else lines[2:]
    if len(entries) != count:
        raise CorruptFileError(path, f"it claims {count} entries and has {len(entries)}")
    return entries


def _whole(path: str, text: str) -> int:
    if not text.isascii() or not text.removeprefix("-").isdigit():
        raise CorruptFileError(path, f"{text!r} is not a whole number")
    value = int(text)
    if not 0 <= value < 1 << 63:
        raise CorruptFileError(path, f"{value} is out of range")
    return value
