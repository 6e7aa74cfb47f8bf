"""Reads the answer that names a coordinator, of a group or of a transactional id."""

from __future__ import annotations

from ixion.clients.address import Address
from ixion.clients.faults import error_code
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorResponse


def read_coordinator(answer: FindCoordinatorResponse) -> tuple[int, ErrorCode, Address]:
    """The coordinator of the one key that was asked for, in all versions."""
    if answer.coordinators:
        found = answer.coordinators[0]
        return found.node_id, error_code(found.error_code), Address(found.host, found.port)
    return answer.node_id, error_code(answer.error_code), Address(answer.host, answer.port)
