"""What a group needs to know about the sender of a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    version: int  # of the request
    client_id: str
    host: str  # as Kafka shows it: a slash, then the address
    rights: Rights | None = None  # None: there is no authorizer
