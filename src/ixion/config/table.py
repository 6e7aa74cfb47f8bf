"""All broker settings by name, collected from the other modules of this package."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ixion.config import (
    cluster_settings,
    group_settings,
    log_settings,
    network_settings,
    quota_settings,
    replica_settings,
    security_settings,
    share_settings,
    streams_settings,
    transaction_settings,
    web_settings,
)
from ixion.config.setting import Scope, Setting

_TABLES: Final = (
    cluster_settings,
    network_settings,
    log_settings,
    replica_settings,
    group_settings,
    share_settings,
    streams_settings,
    transaction_settings,
    quota_settings,
    security_settings,
    web_settings,
)

BROKER_SETTINGS: Final[dict[str, Setting[Any]]] = {
    value.name: value for table in _TABLES for value in vars(table).values() if isinstance(value, Setting)
}

_FAMILIES: Final = [
    (setting.name, *(other.name for other, _ in setting.fallbacks))
    for setting in BROKER_SETTINGS.values()
    if setting.fallbacks and setting.scope is not Scope.READ_ONLY
]
_SYNONYMS: Final = {name: family for family in _FAMILIES for name in family}


def meant(name: str, known: Iterable[str] = BROKER_SETTINGS, likeness: float = 0.75) -> str:
    """The end of a message about an unknown name: suggests the closest known name, if one is close."""
    from difflib import get_close_matches  # slow to import, and rarely needed

    close = get_close_matches(name, known, n=1, cutoff=likeness)
    return f"; did you mean {close[0]!r}?" if close else ""


def synonyms(name: str) -> tuple[str, ...]:
    """The names of a dynamic setting, the strongest first: log.roll.ms before log.roll.hours."""
    return _SYNONYMS.get(name, (name,))
