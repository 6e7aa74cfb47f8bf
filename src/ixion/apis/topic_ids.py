"""The versions since which requests name topics by id (KIP-516, KIP-848), and not by name."""

from __future__ import annotations

from typing import Final

PRODUCE_BY_ID_SINCE: Final = 13
FETCH_BY_ID_SINCE: Final = 13
OFFSET_COMMIT_BY_ID_SINCE: Final = 10
OFFSET_FETCH_BY_ID_SINCE: Final = 10
