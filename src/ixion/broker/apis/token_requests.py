"""Checks which clients may send requests about delegation tokens (38 to 41).

As in Kafka, a client that authenticated with a token may not: otherwise a token could be renewed for ever with itself.
Without delegation.token.secret.key there are no tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion.broker.apis.call import Call
from ixion.broker.apis.services import Services
from ixion.broker.security.principal import ANONYMOUS
from ixion.language.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ixion.broker.controller.tokens import TokenManager

OWNER_SINCE: Final = 3  # a token has an owner and the user that requested it (KIP-373)


def requester_of(call: Call) -> str:
    """The client's principal. KafkaError if the client may not send requests about tokens."""
    connection = call.request.connection
    gate = connection.gate
    if connection.principal == ANONYMOUS if gate is None else gate.by_token:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    return connection.principal


def manager_of(services: Services) -> TokenManager:
    if services.tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return services.tokens


def split(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name
