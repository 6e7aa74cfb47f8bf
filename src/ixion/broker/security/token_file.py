"""The signed token with which this broker logs in, in a file (sasl.oauthbearer.token.endpoint.url=file:/…).

It is read for every login, because tokens expire: another program gets new ones from the identity provider and replaces
the file. We do not request tokens ourselves, so an https URL is refused.
"""

from __future__ import annotations

import re
from typing import Final

from ixion.broker.security.key_set import path_of

MOST_BYTES: Final = 32_768
_TOKEN: Final = re.compile(r"[-_.~+/A-Za-z0-9]+=*")


class TokenFile:
    def __init__(self, url: str) -> None:
        """ValueError if it is not a file: URL."""
        path = path_of(url)
        if path is None:
            raise ValueError("a file: URL; ixion does not request tokens from an https URL")
        self._path = path

    def read(self) -> str:
        """ValueError if the file has no token. The message does not show its content."""
        try:
            with open(self._path, "rb") as file:
                found = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise ValueError(f"{self._path} cannot be read: {error.strerror}") from None
        token = found.decode("ascii", "replace").strip()
        if len(found) > MOST_BYTES or not _TOKEN.fullmatch(token):
            raise ValueError(f"{self._path} has no token")
        return token
