"""The schemas of a registry (Confluent's HTTP API), to show records as people read them. Used on worker threads.

A record begins with a zero byte and four bytes for the id of its schema; an id always means the same schema. Any bytes
may begin so, and strangers choose them: of `KEPT` ids the answers are kept, also that there is none, and questions take
at most `WAIT_S` in each `WINDOW_S`. Records for which there was no time are shown as bytes.
"""

from __future__ import annotations

import http.client
import json
import time
from threading import Lock
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from ixion.broker.web.console.api.avro import AvroError, decode

KEPT: Final = 1_000
MOST_BYTES: Final = 1 << 20  # of a schema
PATIENCE_S: Final = 1.0  # for a question
WAIT_S: Final = 2.0
WINDOW_S: Final = 10.0
FORGET_S: Final = 30.0  # that there is no such schema, or no registry
PREFIX: Final = 5
MOST_DECODED: Final = 256 << 10  # bytes of a record; the interpreter is not given away while JSON is read
KINDS: Final = {"AVRO": "Avro", "JSON": "JSON Schema", "PROTOBUF": "Protobuf"}


class Schema(NamedTuple):
    kind: str  # AVRO, JSON or PROTOBUF
    parsed: Any  # of AVRO
    name: str  # with its id, as people read it


class Decoded(NamedTuple):
    text: str  # JSON; empty: it cannot be shown
    schema: str


class Registry:
    def __init__(self, url: str) -> None:
        """ValueError if this is no URL of HTTP."""
        place = urlsplit(url)
        if place.scheme not in ("http", "https") or not place.hostname or place.username is not None:
            raise ValueError("an http or https URL without a user")
        self._place = place
        self._known: dict[int, tuple[Schema | None, float]] = {}  # with the time at which it was asked
        self._window_s = 0.0
        self._waited_s = 0.0
        self._lock = Lock()

    def decoded(self, data: bytes) -> Decoded | None:
        """None if no schema of the registry begins these bytes."""
        if len(data) < PREFIX or data[0] != 0:
            return None
        schema = self._find(int.from_bytes(data[1:PREFIX], "big"))
        if schema is None:
            return None
        body = data[PREFIX:]
        if len(body) > MOST_DECODED:
            return Decoded("", schema.name)
        try:
            if schema.kind == "AVRO":
                return Decoded(json.dumps(decode(schema.parsed, body), ensure_ascii=False), schema.name)
            if schema.kind == "JSON":
                json.loads(body)
                return Decoded(body.decode(), schema.name)
        except (AvroError, ValueError, RecursionError):
            pass
        return Decoded("", schema.name)

    def _find(self, number: int) -> Schema | None:
        with self._lock:
            now_s = time.monotonic()
            known = self._known.get(number)
            if known is not None and (known[0] is not None or now_s - known[1] < FORGET_S):
                return known[0]
            if now_s - self._window_s >= WINDOW_S:
                self._window_s, self._waited_s = now_s, 0.0
            if self._waited_s >= WAIT_S:
                return None
            found = self._ask(number)
            self._waited_s += time.monotonic() - now_s
            self._known.pop(number, None)
            if len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            self._known[number] = (found, now_s)
            return found

    def _ask(self, number: int) -> Schema | None:
        place = self._place
        make = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
        connection = make(place.hostname or "", place.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", f"{place.path.rstrip('/')}/schemas/ids/{number}", headers={"User-Agent": "ixion"})
            answer = connection.getresponse()
            data = answer.read(MOST_BYTES + 1)
            if answer.status != http.client.OK or len(data) > MOST_BYTES:
                return None
            found = json.loads(data)
            kind = str(found.get("schemaType", "AVRO"))
            parsed = json.loads(found["schema"]) if kind == "AVRO" else None
            title = parsed.get("name", "") if isinstance(parsed, dict) else ""
            return Schema(kind, parsed, f"{KINDS.get(kind, kind[:40])} {number} {str(title)[:100]}".strip())
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        finally:
            connection.close()
