"""What every request must pass before a page sees it, so that no other site can use a browser to reach this broker.

DNS rebinding: a page of evil.example resolves its own name to 127.0.0.1 and asks "its own" server, which is us. The
browser sends `Host: evil.example`, and that is no name of ours. An address needs no name: nothing can be rebound to it.

Cross-site requests: the browser names the asking site in `Origin`, or says `Sec-Fetch-Site: cross-site`. A link to us
from another site is a navigation and is fine; a request by its scripts is not, even though they could not read the
response. A POST is never a navigation here: it has JSON, which no form of another site can send without asking us first
(CORS), and we grant nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from ixion.broker.web.response import RefusedError

# What may be reached by any name where the broker lets other machines in: probes and Prometheus use names that we
# cannot know, and these pages say nothing that is worth an attack by a browser.
OPEN_PATHS: Final = frozenset({"/metrics", "/healthz", "/readyz"})
TAKES_POSTS: Final = ("/api/v1/", "/mcp")
_V4: Final = re.compile(r"\d{1,3}(\.\d{1,3}){3}")
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?")

# `style-src 'self'` also forbids style attributes: templates have none. `connect-src` is what scripts may fetch.
CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = (
    ("Content-Security-Policy", CONTENT_POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


class Guard:
    def __init__(self, names: Collection[str], *, only_here: bool) -> None:
        """`names`: what this server is called. `only_here`: it listens on the loopback address."""
        self._names = frozenset(name.lower() for name in names)
        self._only_here = only_here

    def check(self, path: str, headers: dict[str, str], method: str = "GET") -> None:
        """RefusedError if the request was not meant for this server, or comes from another site."""
        host = headers.get("host", "")
        if not self._is_ours(host) and (self._only_here or path not in OPEN_PATHS):
            raise RefusedError(
                421,
                f"this is not {host[:100] or 'a host without a name'}: use an address, such as http://127.0.0.1:9644",
            )
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            raise RefusedError(403, "requests from other sites are refused")
        followed = method != "POST" and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not followed:
            raise RefusedError(403, "requests from other sites are refused")

    def _is_ours(self, host: str) -> bool:
        if _HOST.fullmatch(host) is None:
            return False
        name = host.lower() if host.endswith("]") else host.lower().rpartition(":")[0] or host.lower()
        if name.startswith("[") or _V4.fullmatch(name) is not None:
            return True
        return name == "localhost" or name.endswith(".localhost") or name in self._names


def check_post(path: str, headers: dict[str, str], most: int) -> int:
    """The size of its body. RefusedError if such a request is not taken."""
    if not path.startswith(TAKES_POSTS):
        raise RefusedError(405, "GET and HEAD only")
    if "transfer-encoding" in headers or "content-length" not in headers:
        raise RefusedError(411, "give the length of the body (Content-Length)")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RefusedError(415, "send JSON (Content-Type: application/json)")
    length = headers["content-length"]  # h11 has checked that it is a number
    size = int(length) if len(length) < 16 else most + 1
    if size > most:
        raise RefusedError(413, f"a body has at most {most:,} bytes")
    return size
