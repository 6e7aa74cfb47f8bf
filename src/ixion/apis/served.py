"""What the broker serves: the one list. ApiVersions answers from it, requests of other keys are refused."""

from __future__ import annotations

from typing import Final

from ixion.protocol.registry import ApiKey

SERVED: Final = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.API_VERSIONS,
)
