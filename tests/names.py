"""Drawn names of groups and transactional ids.

A test with names of its own choice proves little about where they are kept: half of all names are placed alike by
rules that place the other half differently. A failing test shows the names that it drew.
"""

from __future__ import annotations

import os


def drawn(prefix: str) -> str:
    return f"{prefix}-{os.urandom(5).hex()}"
