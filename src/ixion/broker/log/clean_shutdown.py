"""`.kafka_cleanshutdown`: the marker of a directory whose logs were all flushed and closed.

The broker writes it as the last step of a stop, and deletes it before it loads a log. So a crash while loading counts
as unclean.
"""

from __future__ import annotations

import json
import os
from typing import Final

from ixion.broker.log.files import Files

FILE_NAME: Final = ".kafka_cleanshutdown"


def write_marker(files: Files, directory: str, broker_epoch: int = -1) -> None:
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    files.replace_content(os.path.join(directory, FILE_NAME), content.encode(), True)


def has_marker(directory: str) -> bool:
    """Whether the last stop was clean."""
    return os.path.exists(os.path.join(directory, FILE_NAME))


def take_marker(files: Files, directory: str) -> None:
    """Deletes the marker durably."""
    files.remove(os.path.join(directory, FILE_NAME))
    files.sync_dir(directory)
