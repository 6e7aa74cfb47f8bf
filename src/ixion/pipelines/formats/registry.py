"""Schema registries: Confluent's HTTP API, and a folder that stands in for one.

A record begins with a zero byte and four bytes for the id of its schema. An id always means the same schema, so answers
are kept.

    GET /schemas/ids/7                          the schema with id 7
    GET /subjects/orders-value/versions         the versions of a subject
    GET /subjects/orders-value/versions/2       one of them, with its id

A folder has the same as files: orders-value/2.json holds {"id": 7, "schemaType": "AVRO", "schema": "…"}.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.secret_requests import open_url
from ixion.pipelines.spec.registry import RegistrySpec

TIMEOUT_S: Final = 30.0
_MISSING: Final = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    id: int
    version: int
    kind: str  # AVRO, JSON or PROTOBUF
    schema: str
    references: tuple[tuple[str, str, int], ...] = ()  # what it imports: name, subject, version


class Registry(Protocol):
    def versions(self, subject: str) -> list[Registered]:
        """All versions of SUBJECT, the oldest first; empty if there is no such subject."""

    def version(self, subject: str, number: int) -> Registered | None:
        """One version of SUBJECT; None if there is none."""

    def by_id(self, number: int) -> Registered | None:
        """The schema with id NUMBER; None if there is none."""


def open_registry(spec: RegistrySpec) -> Registry:
    if spec.url.startswith(("http://", "https://")):
        return HttpRegistry(spec)
    return FolderRegistry(Path(spec.url))


class FolderRegistry:
    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise PipelineError(f"format.registry: there is no folder {folder}")
        self._folder: Final = folder

    def versions(self, subject: str) -> list[Registered]:
        return sorted(self._read(subject), key=lambda one: one.version)

    def version(self, subject: str, number: int) -> Registered | None:
        return next((one for one in self._read(subject) if one.version == number), None)

    def by_id(self, number: int) -> Registered | None:
        subjects = (path.name for path in self._folder.iterdir() if path.is_dir())
        return next((one for subject in subjects for one in self._read(subject) if one.id == number), None)

    def _read(self, subject: str) -> Iterator[Registered]:
        for path in self._folder.joinpath(subject).glob("*.json"):
            try:
                yield _registered(json.loads(path.read_text("utf-8")), int(path.stem))
            except (ValueError, KeyError, TypeError) as error:
                raise PipelineError(f"format.registry: {path} is no version of a schema: {error}") from None


class HttpRegistry:
    def __init__(self, spec: RegistrySpec) -> None:
        self._url: Final = spec.url.rstrip("/")
        self._headers: Final = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if spec.token:
            self._headers["Authorization"] = f"Bearer {spec.token}"
        elif spec.user:
            pair = base64.b64encode(f"{spec.user}:{spec.password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {pair}"

    def versions(self, subject: str) -> list[Registered]:
        numbers = self._get(_versions(subject)) or []
        if not isinstance(numbers, list):
            raise self._other("its versions are not a list")
        return [one for number in numbers if (one := self.version(subject, number)) is not None]

    def version(self, subject: str, number: int) -> Registered | None:
        found = self._get(f"{_versions(subject)}/{number}")
        return None if found is None else self._read(found, number)

    def by_id(self, number: int) -> Registered | None:
        found = self._get(f"/schemas/ids/{number}")
        return None if found is None else self._read(found, 0, number)

    def _read(self, found: Any, version: int, number: int | None = None) -> Registered:
        try:
            return _registered(found if number is None else {**found, "id": number}, version)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._other("its answer has no id or no schema") from None

    def _other(self, reason: str) -> PipelineError:
        hint = "is the address right? A registry answers GET /subjects with a list of names"
        return PipelineError(f"{self._url} does not answer as a schema registry: {reason}", hint=hint)

    def _get(self, path: str) -> Any:
        """The answer to a GET request; None if it is 404."""
        request = urllib.request.Request(f"{self._url}{path}", headers=self._headers)  # noqa: S310 - http(s) only
        try:
            with open_url(request, TIMEOUT_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            error.close()  # it is the answer, too
            if error.code == _MISSING:
                return None
            hint = "are user and password, or the token, right? [format.registry] has them" if error.code < 500 else ""
            message = f"the schema registry {self._url} answered {error.code} {error.reason}"
            raise PipelineError(message, hint=hint, retry=error.code >= 500) from None
        except ValueError:
            raise self._other("its answer is not JSON") from None
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise PipelineError(f"the schema registry {self._url} cannot be reached: {reason}", retry=True) from None


def _versions(subject: str) -> str:
    return f"/subjects/{urllib.parse.quote(subject, safe='')}/versions"


def _registered(values: dict[str, Any], version: int) -> Registered:
    schema = values["schema"]
    text = schema if isinstance(schema, str) else json.dumps(schema)
    references = tuple(
        (str(one["name"]), str(one["subject"]), int(one["version"])) for one in values.get("references") or ()
    )
    kind = values.get("schemaType", "AVRO")
    return Registered(id=int(values["id"]), version=version, kind=kind, schema=text, references=references)
