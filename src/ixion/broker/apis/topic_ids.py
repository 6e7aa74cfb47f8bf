"""The first versions of requests that name topics by id instead of by name (KIP-516, KIP-848, KIP-1319)."""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final

PRODUCE_BY_ID_SINCE: Final = 13
FETCH_BY_ID_SINCE: Final = 13
OFFSET_COMMIT_BY_ID_SINCE: Final = 10
OFFSET_FETCH_BY_ID_SINCE: Final = 10
TXN_OFFSET_COMMIT_BY_ID_SINCE: Final = 6
