"""Are the replicas of every partition the same bytes? Asked when all brokers have stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from devtools.history.checker import Anomaly

COMPACTED: Final = ("__consumer_offsets-", "__transaction_state-")  # each replica compacts by itself


def unequal(brokers: Sequence[Path]) -> list[Anomaly]:
    """Partitions whose replicas differ, by the data directories of the brokers."""
    anomalies = []
    for partition in sorted(path.name for path in brokers[0].iterdir() if path.is_dir()):
        if partition.startswith(COMPACTED):
            continue
        contents = [log_bytes(directory / partition) for directory in brokers]
        if len({content[0] for content in contents}) > 1:
            continue  # one begins later than another: retention, which runs on each by itself
        if any(content != contents[0] for content in contents):
            sizes = [len(content[1]) for content in contents]
            anomalies.append(Anomaly("unequal replicas", f"{partition}: logs of {sizes} bytes differ"))
    return anomalies


def log_bytes(directory: Path) -> tuple[str, bytes]:
    """The name of the first segment, and all segments one after the other."""
    segments = sorted(directory.glob("*.log"))
    return (segments[0].name, b"".join(map(Path.read_bytes, segments))) if segments else ("", b"")
