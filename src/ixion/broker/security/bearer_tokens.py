"""Checks a signed token (JWT): signature (with a key of the key set), issuer, audience, times, subject, scope.

Uses PyJWT and cryptography (the extra `security`), which only a broker with OAUTHBEARER imports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ixion.broker.security.key_set import ALGORITHMS, KeySet
from ixion.language.sasl.exchange import SaslRefusedError
from ixion.language.sasl.oauthbearer import Bearer

EVERY: Final = tuple(name for names in ALGORITHMS.values() for name in names)
LONGEST_USER: Final = 1_000
LATEST_S: Final = 253_402_300_799  # the end of the year 9999


def check_installed() -> None:
    """ImportError if the libraries are not installed."""
    import cryptography  # noqa: F401
    import jwt  # noqa: F401


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    issuer: str | None = None  # None: any
    audience: tuple[str, ...] = ()  # one of these; empty: any
    skew_s: int = 30
    user_claim: str = "sub"
    scope_claim: str = "scope"


class BearerTokens:
    def __init__(self, keys: KeySet, expected: Expected) -> None:
        self.keys = keys
        self._expected = expected

    def validate(self, token: str) -> Bearer:
        """SaslRefusedError with the reason, without the token."""
        import jwt

        expected = self._expected
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise SaslRefusedError("the token is not a signed token (JWT)") from None
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in EVERY:
            raise SaslRefusedError(f"the token is signed with {str(algorithm)[:20]!r}, which is not accepted")
        key = self.keys.find(key_id, algorithm)
        if key is None:
            raise SaslRefusedError("the token is signed with an unknown key")
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                jwt.PyJWK(dict(key), algorithm),
                algorithms=[algorithm],
                audience=expected.audience or None,
                issuer=expected.issuer,
                leeway=expected.skew_s,
                options={
                    "require": ["exp", *(["iss"] if expected.issuer else []), *(["aud"] if expected.audience else [])],
                    "verify_aud": bool(expected.audience),
                },
            )
        except jwt.PyJWTError as error:
            raise SaslRefusedError(
                f"the token is not accepted: {REASONS.get(type(error).__name__, 'it is not valid')}"
            ) from None
        expiry_s = claims["exp"]
        if not isinstance(expiry_s, int | float):  # PyJWT also accepts a string of digits
            raise SaslRefusedError("the token is not accepted: its expiry is not a number")
        return Bearer(self._user_of(claims), int(min(expiry_s, LATEST_S) * 1_000))

    def _user_of(self, claims: dict[str, Any]) -> str:
        user = claims.get(self._expected.user_claim)
        if not isinstance(user, str) or not user.strip() or len(user) > LONGEST_USER:
            raise SaslRefusedError(f"the token has no user in its claim {self._expected.user_claim!r}")
        scope = claims.get(self._expected.scope_claim, "")
        texts = scope if isinstance(scope, list) else [scope]
        if not all(isinstance(each, str) for each in texts):
            raise SaslRefusedError(f"the claim {self._expected.scope_claim!r} of the token is not text")
        return user


REASONS: Final = {
    "ExpiredSignatureError": "it has expired",
    "ImmatureSignatureError": "it is not valid yet",
    "InvalidAudienceError": "it is for another audience",
    "InvalidIssuedAtError": "it was issued in the future",
    "InvalidIssuerError": "it is from another issuer",
    "InvalidSignatureError": "its signature is wrong",
    "MissingRequiredClaimError": "it lacks its expiry, issuer or audience",
}
