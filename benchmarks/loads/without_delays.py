"""The sources of ixion without delayed delivery, as far as a produce or a fetch of an ordinary topic meets it.

A19 compares the two: a topic in mode `off` should pay nothing for the feature. Each cut takes away all that one place
of that path has for it; what is left works as before for such topics. A place that has changed fails here by name.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[2]


class Cut(NamedTuple):
    file: str
    found: str
    instead: str = ""


CUTS = (
    Cut(
        "broker/replica/append.py",
        """        schedule = partition.schedule
        if schedule is None:
            info = partition.append(records, acks, origin, checked)
        else:
            info = schedule.append(records, acks, origin, checked)
""",
        """        info = partition.append(records, acks, origin, checked)
""",
    ),
    Cut(
        "broker/replica/append.py",
        """    if partition.log.config.delivery_delay_ms:
        replicas.delays.appended(partition)
""",
    ),
    Cut(
        "broker/replica/partition.py",
        """        if self.samples > 0:
            self._look_for_delays(records)
""",
    ),
    Cut(
        "broker/replica/read.py",
        """        barrier = max(log.visible_end, log.log_start) if self._bound != Bound.END else log.end_offset
        result.high_watermark = min(log.high_watermark, barrier)
        result.last_stable_offset = min(log.last_stable_offset, barrier)
""",
        """        result.high_watermark = log.high_watermark
        result.last_stable_offset = log.last_stable_offset
""",
    ),
    Cut(
        "broker/replica/read.py",
        """        if partition.covers is not None and self._bound == Bound.END:
            # For a follower of a sibling: how far its notes go, and where the sibling ends (`siblings`).
            result.high_watermark = partition.covers.log.end_offset
            result.last_stable_offset = log.end_offset
""",
    ),
    Cut(
        "broker/replica/read.py",
        """        if partition.covers is not None and has_no_more(log, wish.offset, data):
            result.last_stable_offset = wish.offset  # its last notes were truncated: the follower has all others
""",
    ),
    Cut(
        "broker/replica/delayed_fetch.py",
        "if (limit < wish.offset and limit != log.visible_end) or log.log_start > wish.offset:",
        "if limit < wish.offset or log.log_start > wish.offset:",
    ),
    Cut("broker/log/view.py", "return min(log.high_watermark, log.visible_end)", "return log.high_watermark"),
    Cut("broker/log/view.py", "return min(log.last_stable_offset, log.visible_end)", "return log.last_stable_offset"),
    Cut(
        "language/records/validate.py",
        """            if self._reads_wishes and walker.header_count > 0:
                self._read_wish(walker)
""",
    ),
)


def write_without_delays(folder: Path) -> Path:
    """A copy of `src` without the feature; for PYTHONPATH."""
    tree = folder / "src"
    shutil.copytree(CHECKOUT / "src", tree, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for cut in CUTS:
        file = tree / "ixion" / cut.file
        text = file.read_text(encoding="utf-8")
        if text.count(cut.found) != 1:
            raise RuntimeError(f"{cut.file} has changed: this is there {text.count(cut.found)} times:\n{cut.found}")
        file.write_text(text.replace(cut.found, cut.instead), encoding="utf-8")
    return tree
