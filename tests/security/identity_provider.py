"""An identity provider for tests: keys, the set of them that is public, and tokens."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

ISSUER = "https://issuer.example"


class Provider:
    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())

    def key_set(self, *, ec_id: str = "e1", rsa_id: str = "r1", only: str = "") -> dict[str, Any]:
        keys = {
            "rsa": {**RSAAlgorithm.to_jwk(self.rsa.public_key(), as_dict=True), "kid": rsa_id, "use": "sig"},
            "ec": {**ECAlgorithm.to_jwk(self.ec.public_key(), as_dict=True), "kid": ec_id, "alg": "ES256"},
        }
        return {"keys": [keys[only]] if only else list(keys.values())}

    def write(self, path: Path, **options: Any) -> str:
        """The URL of a file with the keys."""
        path.write_text(json.dumps(self.key_set(**options)))
        return path.as_uri()

    def token(
        self,
        *,
        algorithm: str = "RS256",
        key: Any = None,
        key_id: str | None = "r1",
        lives_s: float = 300,
        **claims: Any,
    ) -> str:
        now_s = int(time.time())
        full = {"sub": "alice", "iss": ISSUER, "aud": "kafka", "iat": now_s, "exp": now_s + lives_s, "scope": "a b"}
        kept = {name: value for name, value in {**full, **claims}.items() if value is not None}
        signing = key if key is not None else self.ec if algorithm.startswith("ES") else self.rsa
        return jwt.encode(kept, signing, algorithm, headers={} if key_id is None else {"kid": key_id})
