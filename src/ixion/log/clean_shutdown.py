"""`.kafka_cleanshutdown`: everything in this directory was flushed and closed before the process ended.

It is written last when stopping and deleted before anything is loaded, so a crash while loading counts as unclean.
"""

from __future__ import annotations

import json
import os
from typing import Final

from ixion.log.files import Files

FILE_NAME: Final = ".kafka_cleanshutdown"


def write_marker(files: Files, directory: str, broker_epoch: int = -1) -> None:
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    files.replace_content(os.path.join(directory, FILE_NAME), content.encode(), True)


def has_marker(directory: str) -> bool:
    """Whether the last stop was a clean one."""
    return os.path.exists(os.path.join(directory, FILE_NAME))


def take_marker(files: Files, directory: str) -> None:
    """Afterwards the marker is gone, for good."""
    files.remove(os.path.join(directory, FILE_NAME))
    files.sync_dir(directory)
