"""What /api/v1/openapi.json says is what the broker does, whatever is asked: drawn paths, queries and bodies, valid and
not. Every answer has a status that is described for it, and JSON of the schema that belongs to it."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ixion.broker.web.console.api.figures import as_json
from ixion.broker.web.console.endpoints import BASE, openapi
from ixion.clients import Producer
from ixion.testing import Broker
from tests.web.hostile import TEXTS

DOCUMENT = openapi("1")
SCHEMAS = DOCUMENT["components"]["schemas"]
OPERATIONS = [(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods]
NAMES = {"topic": "orders", "group": "billing", "partition": "0", "offset": "0", "level": "1", "bucket": "0"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"auto.create.topics.enable": "false"}, metrics=True) as running:
        running.create_topic("orders", 2)
        running.create_topic("jobs", 1, delivery_delay_mode="record")
        with Producer(running.bootstrap) as producer:
            for number in range(20):
                producer.send("orders", b'{"n": 1}', key=str(number).encode(), headers=[("trace", b"\xff")])
            producer.flush()
        yield running


# The document.


def refs(found: Any) -> Iterator[str]:
    if isinstance(found, dict):
        if isinstance(found.get("$ref"), str):
            yield found["$ref"]
        for each in found.values():
            yield from refs(each)
    elif isinstance(found, list):
        for each in found:
            yield from refs(each)


def test_a_long_answer_is_written_row_by_row() -> None:
    """500 records with long headers are 9 MB, which `json` writes in 45 ms without a pause."""
    found = {"page": {"total": 2}, "rows": [{"name": 'é"', "n": number} for number in range(50)], "none": [], "of": "x"}
    steps = as_json(found)
    turns = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            made = end.value
            break
        turns += 1
    assert turns >= 50
    assert made == json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()


def test_the_document_is_whole() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    assert {each.rpartition("/")[2] for each in refs(DOCUMENT)} <= set(SCHEMAS)
    operations = [DOCUMENT["paths"][path][method] for path, method in OPERATIONS]
    assert len({each["operationId"] for each in operations}) == len(operations)
    for path, method in OPERATIONS:
        operation = DOCUMENT["paths"][path][method]
        given_names = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
        assert given_names == set(re.findall(r"{(\w+)}", path))
        assert ("requestBody" in operation) == (method == "post")


# What is asked.

texts = st.one_of(st.sampled_from([*TEXTS, "orders", "jobs", "0", "-1"]), st.text(max_size=12))
numbers = st.integers(-(1 << 65), 1 << 65)
anything = st.recursive(
    st.none() | st.booleans() | numbers | texts, lambda inner: st.lists(inner, max_size=3), max_leaves=4
)


def values_of(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit the schema."""
    if "$ref" in schema:
        return values_of(SCHEMAS[schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return st.one_of(*map(values_of, schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "object":
            known = {name: values_of(each) for name, each in schema.get("properties", {}).items()}
            required = {name: known[name] for name in schema.get("required", ())}
            optional = {name: each for name, each in known.items() if name not in required}
            return st.fixed_dictionaries(required, optional=optional)
        case "array":
            return st.lists(values_of(schema["items"]), max_size=3)
        case "integer":
            return st.integers(-2, 3) | numbers
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case _:
            return texts


@st.composite
def requests(draw: st.DrawFn, path: str, method: str) -> tuple[str, bytes | None]:
    operation = DOCUMENT["paths"][path][method]
    at = {name: draw(st.just(NAMES[name]) | texts.filter(bool)) for name in re.findall(r"{(\w+)}", path)}
    target = path.format(**{name: quote(each, safe="") for name, each in at.items()})
    query = {
        each["name"]: draw(values_of(each["schema"]) | texts)
        for each in operation["parameters"]
        if each["in"] == "query" and draw(st.booleans())
    }
    body = None
    if "requestBody" in operation:
        wanted = operation["requestBody"]["content"]["application/json"]["schema"]
        body = json.dumps(draw(values_of(wanted) | anything)).encode()
    return f"{target}?{urlencode(query)}" if query else target, body


# What is answered.


def faults(value: Any, schema: dict[str, Any], where: str = "$") -> list[str]:
    """Where a value does not fit its schema."""
    if "$ref" in schema:
        return faults(value, SCHEMAS[schema["$ref"].rpartition("/")[2]], where)
    if "anyOf" in schema:
        return [] if any(not faults(value, each) for each in schema["anyOf"]) else [f"{where}: {value!r}"]
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{where}: {value!r}"]
    kinds: dict[str, Any] = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    kind = schema["type"]
    if kind in ("integer", "number"):
        fits = isinstance(value, int if kind == "integer" else (int, float)) and not isinstance(value, bool)
        return [] if fits else [f"{where}: {value!r}"]
    if not isinstance(value, kinds[kind]):
        return [f"{where}: {value!r} is no {kind}"]
    if kind == "array":
        return [each for item in value for each in faults(item, schema["items"], f"{where}[]")]
    if kind == "object":
        known = schema.get("properties", {})
        lacks = [f"{where} lacks {name}" for name in schema.get("required", ()) if name not in value]
        extra = schema.get("additionalProperties", True)
        for name, each in value.items():
            inner = known.get(name, extra)
            if inner is False:
                lacks.append(f"{where} has {name}")
            elif isinstance(inner, dict):
                lacks += faults(each, inner, f"{where}.{name}")
        return lacks
    return []


def ask(broker: Broker, method: str, target: str, body: bytes | None) -> tuple[int, str, bytes]:
    address = urlsplit(broker.metrics_url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    try:
        connection.request(method.upper(), target, body, {} if body is None else {"Content-Type": "application/json"})
        answer = connection.getresponse()
        kind = answer.headers.get_content_type()
        return answer.status, kind, b"" if kind == "text/event-stream" else answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=[f"{method} {path}" for path, method in OPERATIONS])
def test_every_answer_is_one_that_is_described(broker: Broker, path: str, method: str) -> None:
    responses = DOCUMENT["paths"][path][method]["responses"]
    assert path.startswith(BASE)

    @settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(request=requests(path, method))
    def look(request: tuple[str, bytes | None]) -> None:
        status, kind, body = ask(broker, method, *request)
        assert str(status) in responses, (request, status, body[:300])
        described = responses[str(status)]["content"]
        assert kind in described or kind == "text/csv", (request, kind)
        if kind == "application/json":
            assert faults(json.loads(body), described[kind]["schema"]) == []

    look()
