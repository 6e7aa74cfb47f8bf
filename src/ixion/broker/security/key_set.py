"""The keys of an identity provider (JWKS, RFC 7517), from a file or an https URL, refreshed while the broker runs.

The URL is in the settings of the broker, which no client can change. It must be https, and we follow no redirect: a
redirect could make the broker read an internal address that only it can reach.

    loop thread      `find` looks up a key; if it is missing, it asks for a refresh (`wanted`)
    worker thread    `look`, once a second: reads again if the file changed, the interval is over, or a key was missing
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    import http.client
    import ssl

logger = logging.getLogger(__name__)

MOST_BYTES: Final = 1 << 20
MOST_KEYS: Final = 1_000
PATIENCE_S: Final = 10.0  # timeout of one socket operation
ALL_PATIENCE_S: Final = 30.0  # timeout of the whole request, for a server that sends a byte now and then
SOONEST_S: Final = 10.0  # between two requests to a URL, however many keys are missing
# Only signatures made with a private key: with HS256 anybody could sign a token with the public key.
ALGORITHMS: Final[Mapping[str, tuple[str, ...]]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}

Key = Mapping[str, Any]  # a JSON Web Key


class KeySet:
    def __init__(
        self,
        url: str,
        refresh_s: float,
        *,
        late: bool = False,
        context: ssl.SSLContext | None = None,
        all_patience_s: float = ALL_PATIENCE_S,
    ) -> None:
        """Reads the keys. ValueError with the reason if there are none. `late`: wait for the first `look` instead.
        `context`: TLS settings for https, instead of the system's authorities."""
        self._url = url
        self._refresh_s = refresh_s
        self._context = context
        self._all_patience_s = all_patience_s
        self._path = path_of(url)
        self._stamp = self._stamp_now()
        self._read_s = time.monotonic()
        self._keys = [] if late else self._read()
        self.wanted = False

    def find(self, key_id: str | None, algorithm: str) -> Key | None:
        """The key of a token. For a token without a key id, the only key that fits its algorithm."""
        fitting = [key for key in self._keys if fits(key, algorithm)]
        if key_id is None:
            return fitting[0] if len(fitting) == 1 else None
        for key in fitting:
            if key.get("kid") == key_id:
                return key
        self.wanted = True
        return None

    def look(self) -> None:
        """Refresh the keys; call it on a worker thread. If that fails, log it and keep the old keys."""
        now_s = time.monotonic()
        if self._path is not None:
            stamp = self._stamp_now()
            if stamp == self._stamp:
                return
            self._stamp = stamp
        elif now_s - self._read_s < (SOONEST_S if self.wanted else self._refresh_s):
            return
        self._read_s = now_s
        self.wanted = False
        try:
            self._keys = self._read()
        except ValueError as error:
            logger.error("cannot refresh the keys of OAUTHBEARER, keeping the old ones: %s", error)

    def _stamp_now(self) -> tuple[int, int, int]:
        if self._path is None:
            return 0, 0, 0
        try:
            found = os.stat(self._path)
        except OSError:
            return 0, 0, 0
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> list[Key]:
        return keys_of(self._url, self._read_file(self._path) if self._path is not None else self._ask())

    def _read_file(self, path: str) -> bytes:
        try:
            with open(path, "rb") as file:
                return file.read(MOST_BYTES + 1)
        except OSError as error:
            raise ValueError(f"{path} cannot be read: {error.strerror}") from None

    def _ask(self) -> bytes:
        import http.client

        place = urlsplit(self._url)
        connection = http.client.HTTPSConnection(
            place.hostname or "", place.port, timeout=PATIENCE_S, context=self._context
        )
        watch = threading.Timer(self._all_patience_s, cut_off, [connection])
        watch.daemon = True
        watch.start()
        try:
            path = (place.path or "/") + (f"?{place.query}" if place.query else "")
            connection.request("GET", path, headers={"Accept": "application/json", "User-Agent": "ixion"})
            answer = connection.getresponse()
            status, reason, found = answer.status, answer.reason, answer.read(MOST_BYTES + 1)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ValueError(f"{self._url} cannot be read: {error}") from None
        finally:
            watch.cancel()
            connection.close()
        if status != http.client.OK:
            raise ValueError(f"{self._url} responds {status} {reason}")
        return found


def cut_off(connection: http.client.HTTPConnection) -> None:
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


def path_of(url: str) -> str | None:
    """The path of a file: URL; None for https. ValueError for any other URL."""
    place = urlsplit(url)
    if place.scheme == "file" and not place.netloc and place.path:
        return unquote(place.path)
    if place.scheme != "https" or not place.hostname or place.username is not None:
        raise ValueError("an https URL without a user, or a file: URL")
    return None


def keys_of(source: str, data: bytes) -> list[Key]:
    if len(data) > MOST_BYTES:
        raise ValueError(f"{source} has more than {MOST_BYTES} bytes")
    try:
        keys = json.loads(data)["keys"]
        usable = [key for key in keys if key.get("kty") in ALGORITHMS and key.get("use", "sig") == "sig"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{source} is not a JSON Web Key Set") from None
    if not usable or len(usable) > MOST_KEYS:
        raise ValueError(f"{source} has {len(usable)} public keys for signatures; 1 to {MOST_KEYS} are allowed")
    return usable


def fits(key: Key, algorithm: str) -> bool:
    return algorithm in ALGORITHMS[key["kty"]] and key.get("alg", algorithm) == algorithm
