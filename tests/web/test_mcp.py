"""The endpoints as tools for assistants (MCP)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ixion.broker.web.console import mcp
from ixion.broker.web.console.endpoints import ENDPOINTS
from ixion.broker.web.console.mcp import NAMES, TOOLS, VERSIONS
from ixion.clients import Producer
from ixion.language.model.acl_names import Operation, ResourceKind
from ixion.testing import Broker
from tests.web.posts import ask
from tests.web.test_rights import BOB, SETTINGS, Visitor, admin, allow, basic

__all__ = ["admin"]


@pytest.fixture(scope="module")
def open_broker() -> Iterator[Broker]:
    with Broker({"web.write": "false"}, metrics=True) as running:
        running.create_topic("orders")
        with Producer(running.bootstrap) as producer:
            producer.send("orders", b'{"total": 7}', key=b"c/1")
            producer.flush()
        yield running


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """One that asks for a login."""
    with Broker(SETTINGS, metrics=True) as running:
        running.create_topic("orders")
        yield running


def message(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def result(broker: Broker, method: str, **params: Any) -> Any:
    status, found = ask(broker, "/mcp", message(method, **params))
    assert (status, found["jsonrpc"], found["id"]) == (200, "2.0", 7)
    return found["result"]


def call(broker: Broker, name: str, **arguments: Any) -> tuple[bool, Any]:
    found = result(broker, "tools/call", name=name, arguments=arguments)
    (content,) = found["content"]
    assert content["type"] == "text"
    text = content["text"]
    return found["isError"], json.loads(text) if text.startswith("{") else text


def test_every_endpoint_that_is_no_stream_and_no_login_is_a_tool() -> None:
    names = {each.name for each in ENDPOINTS}
    assert names - set(NAMES) == {"events", "wheel_events", "tail", "export", "session", "sign_in", "sign_out"}
    assert len(TOOLS) == len(NAMES)


def test_an_assistant_greets_lists_and_calls(open_broker: Broker) -> None:
    found = result(open_broker, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x"})
    assert found["protocolVersion"] == "2025-06-18"
    assert "tools" in found["capabilities"]
    assert result(open_broker, "initialize", protocolVersion="1999-01-01")["protocolVersion"] == VERSIONS[0]
    assert ask(open_broker, "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}) == (202, "")
    assert result(open_broker, "ping") == {}
    tools = {each["name"]: each for each in result(open_broker, "tools/list")["tools"]}
    assert all(each["annotations"]["readOnlyHint"] for each in tools.values())
    assert "send_records" not in tools  # web.write is off
    schema = tools["read_records"]["inputSchema"]
    assert schema["required"] == ["topic"]
    assert schema["properties"]["limit"]["type"] == "integer"
    failed, topics = call(open_broker, "list_topics", q="ord")
    assert (failed, [each["name"] for each in topics["topics"]]) == (False, ["orders"])
    failed, records = call(open_broker, "read_records", topic="orders", limit=5, filter="value.total > 3")
    assert (failed, records["records"][0]["key"]["text"]) == (False, "c/1")


def test_what_is_refused_is_a_result_that_says_why(open_broker: Broker) -> None:
    for name, arguments, why in (
        ("describe_topic", {"topic": "none/such"}, "there is no topic 'none/such'"),
        ("describe_topic", {}, "topic is missing"),
        ("list_topics", {"limit": "many"}, "limit is a whole number"),
        ("list_topics", {"limit": [1]}, "limit is text or a whole number"),
        ("list_topics", {"other": 1}, "no argument 'other'"),
        ("send_records", {"topic": "orders", "records": [{"value": "x"}]}, "web.write"),
        ("read_one_record", {"topic": "orders", "partition": "\xb2", "offset": "0"}, "numbers"),
        ("read_one_record", {"topic": "orders", "partition": "0", "offset": "\xb2"}, "numbers"),
    ):
        failed, found = call(open_broker, name, **arguments)
        assert failed
        assert why in (found["error"] if isinstance(found, dict) else found)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (message("nothing"), -32601),
        (message("tools/call", name="none"), -32602),
        (message("tools/call", name=["x"]), -32602),
        (message("tools/call", name="overview", arguments=[]), -32602),
        ([message("ping")], -32600),
        ({"id": 7, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 7, "method": 1}, -32600),
        ({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": []}, -32600),
        ({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"x": [0] * 30_000}}, -32600),
        ({"jsonrpc": "2.0", "id": "\ud800", "method": "ping"}, -32600),
        (message("tools/call", name="describe_topic", arguments={"topic": "\udfff"}), -32600),
    ],
)
def test_what_is_no_message_is_an_error_of_the_protocol(open_broker: Broker, sent: Any, code: int) -> None:
    status, found = ask(open_broker, "/mcp", sent)
    assert (status, found["error"]["code"]) == (200, code)


def test_an_answer_that_no_assistant_can_read_is_refused(open_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp, "MOST_BYTES", 20)
    failed, found = call(open_broker, "list_topics")
    assert failed
    assert "fewer rows" in found


def test_the_way_to_it_is_guarded_as_every_endpoint(open_broker: Broker) -> None:
    assert ask(open_broker, "/mcp")[0] == 405
    assert ask(open_broker, "/mcp", message("ping"), Origin="http://evil.example")[0] == 403
    assert ask(open_broker, "/mcp", message("ping"), Host="evil.example")[0] == 421
    assert ask(open_broker, "/mcp", message("ping"), MCP_Protocol_Version="2024-11-05")[0] == 400


def test_it_acts_with_the_rights_of_the_user(broker: Broker, admin: Any) -> None:
    assert ask(broker, "/mcp", message("tools/list"))[0] == 401
    bob = Visitor(broker, Authorization=basic(*BOB))

    def called(name: str, **arguments: Any) -> dict[str, Any]:
        status, found = bob.ask("/mcp", message("tools/call", name=name, arguments=arguments))
        assert status == 200
        return dict(found["result"])

    names = {each["name"] for each in bob.ask("/mcp", message("tools/list"))[1]["result"]["tools"]}
    assert "list_topics" in names
    assert "list_connections" not in names  # bob may not describe the cluster
    assert called("list_connections")["isError"]
    sent = {"topic": "orders", "records": [{"value": "by an assistant"}]}
    assert called("send_records", **sent)["isError"]
    allow(admin, ResourceKind.TOPIC, "orders", Operation.WRITE)
    found = called("send_records", **sent)
    assert not found["isError"]
    assert json.loads(found["content"][0]["text"])["written"] == 1
    assert called("read_records", topic="orders")["isError"]
