"""The static files: read once, named by their hash, so that browsers may keep them for good.

All are ours but the typeface, JetBrains Mono (fontsource 5.3.0, SIL Open Font License 1.1).
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import Answer, RefusedError, Response

FOLDER: Final = Path(__file__).parent / "static"
KINDS: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".LICENSE": "text/plain; charset=utf-8",
}
BASE: Final = "/static/"


class File(NamedTuple):
    body: bytes
    kind: str


class Files:
    def __init__(self) -> None:
        self.paths: dict[str, str] = {}  # by name: the path with the hash
        self._by_name: dict[str, File] = {}  # by the name with the hash
        # Styles last: they name the others.
        for path in sorted(FOLDER.iterdir(), key=lambda each: (each.suffix == ".css", each.name)):
            kind = KINDS.get(path.suffix)
            if kind is None:
                continue
            body = path.read_bytes()
            if path.suffix == ".css":
                for name, hashed in self.paths.items():
                    body = body.replace(f'url("{name}")'.encode(), f'url("{hashed}")'.encode())
            hashed = f"{path.stem}.{sha256(body).hexdigest()[:12]}{path.suffix}"
            self.paths[path.name] = BASE + hashed
            self._by_name[hashed] = File(body, kind)

    async def page(self, request: HttpRequest) -> Answer:
        found = self._by_name.get(request.at["name"])
        if found is None:
            raise RefusedError(404, "there is no such file")
        return Response(found.body, kind=found.kind, keep=True)
