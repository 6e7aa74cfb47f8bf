"""Keeps the data of a broker from other users of the machine: records, and keys of users in the metadata."""

from __future__ import annotations

import logging
import os
import stat

logger = logging.getLogger(__name__)


def make_private(path: str, mode: int) -> None:
    """Take the rights of others to an existing file or directory away. A missing one is no error."""
    try:
        found = stat.S_IMODE(os.stat(path).st_mode)
        if found & 0o077:
            os.chmod(path, mode)
            logger.warning("%s was open to other users (mode %03o); it has mode %03o now", path, found, mode)
    except FileNotFoundError:
        return
    except OSError as error:
        logger.warning("%s is open to other users of this machine, and its mode cannot be changed: %s", path, error)
