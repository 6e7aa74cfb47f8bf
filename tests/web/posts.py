"""Requests to the endpoints of a broker that has a live page."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from ixion.testing import Broker


def ask(broker: Broker, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """Status and JSON; a POST if there is a body."""
    address = broker.metrics_url.removesuffix("/metrics") + path
    data = None if body is None else json.dumps(body).encode()
    given = {"Content-Type": "application/json"} if body is not None else {}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(address, data=data, headers=given)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, read(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, read(error.read())


def read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode()


def post(broker: Broker, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    return ask(broker, f"/api/v1{path}", body, **headers)


def get(broker: Broker, path: str, **headers: str) -> tuple[int, Any]:
    return ask(broker, f"/api/v1{path}", **headers)
