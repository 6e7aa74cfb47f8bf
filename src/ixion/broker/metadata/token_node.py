"""`/delegation_token/tokens/ID`: a delegation token, without its HMAC, which every broker can compute.

A change creates a sequential node with the id: `/delegation_token/token_changes/token_change_`. Principals are
URL-encoded: `User%3Aalice`.
"""

from __future__ import annotations

from typing import Any, Final

from ixion.broker.metadata.content import from_json, to_json
from ixion.broker.metadata.paths import plain, sanitized
from ixion.language.model.delegation_token import Token

TOKENS: Final = "/delegation_token/tokens"
CHANGES: Final = "/delegation_token/token_changes"
NEW_CHANGE: Final = f"{CHANGES}/token_change_"
BASE: Final = (TOKENS, CHANGES)  # created when a broker with tokens starts, if they are missing
REQUESTER_SINCE: Final = 3
VERSION: Final = 3


def path_of(token_id: str) -> str:
    return f"{TOKENS}/{token_id}"


def encode_token(token: Token) -> bytes:
    return to_json(
        {
            "version": VERSION,
            "owner": sanitized(token.owner),
            "tokenRequester": sanitized(token.requester),
            "renewers": [sanitized(each) for each in token.renewers],
            "issueTimestamp": token.issued_ms,
            "maxTimestamp": token.max_ms,
            "expirationTimestamp": token.expires_ms,
            "tokenId": token.token_id,
        }
    )


def decode_token(token_id: str, data: bytes) -> Token:
    def read(members: dict[str, Any]) -> Token:
        version = int(members["version"])
        if not 1 <= version <= VERSION:
            raise ValueError(f"version {version}")
        owner = plain(members["owner"])
        return Token(
            token_id=str(members["tokenId"]),
            owner=owner,
            requester=plain(members["tokenRequester"]) if version >= REQUESTER_SINCE else owner,
            renewers=tuple(plain(each) for each in members["renewers"]),
            issued_ms=int(members["issueTimestamp"]),
            max_ms=int(members["maxTimestamp"]),
            expires_ms=int(members["expirationTimestamp"]),
        )

    return from_json(f"delegation token {token_id}", data, read)
