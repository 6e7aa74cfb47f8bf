"""A broker that asks clients to log in: its page shows each user what its rights allow, and nobody else anything."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.broker.startup.console import closed
from ixion.broker.web.console import attempts, door
from ixion.broker.web.console.app import VIEWS, needs_of
from ixion.broker.web.console.endpoints import ENDPOINTS
from ixion.broker.web.console.rights import EACH, OPEN
from ixion.broker.web.server import WebServer
from ixion.clients import Admin, Producer
from ixion.clients.admin.users import ScramDeletion, ScramUpsertion
from ixion.language.model.acl_binding import Binding, Entry, Filter, ResourcePattern
from ixion.language.model.acl_names import Operation, PatternKind, Permission, ResourceKind
from ixion.testing import Broker
from tests.security.certificates import Authority
from tests.security.identity_provider import Provider
from tests.web.posts import read

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} user_root="r-secret" user_bob="b-secret";',
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:root;User:ANONYMOUS",
    "connection.failed.authentication.delay.ms": "0",
    "web.write": "true",
}
ROOT, BOB = ("root", "r-secret"), ("bob", "b-secret")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "FAILED_S", 0.0)
    monkeypatch.setattr(attempts, "MOST", 10_000)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS, metrics=True) as running:
        for name in ("orders", "secrets"):
            running.create_topic(name)
        with Producer(running.bootstrap) as producer:
            for name in ("orders", "secrets"):
                producer.send(name, b"value", key=b"key")
            producer.flush()
        yield running


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    """Its rules are those of one test."""
    with Admin(broker.bootstrap) as made:
        yield made
        made.delete_acls([Filter()]).check()


def allow(admin: Admin, kind: ResourceKind, name: str, operation: Operation, user: str = "bob") -> None:
    pattern = ResourcePattern(kind, name, PatternKind.LITERAL)
    admin.create_acls([Binding(pattern, Entry(f"User:{user}", "*", operation, Permission.ALLOW))]).check()


class Visitor:
    """A browser or a script: with a cookie, or with an Authorization header."""

    def __init__(self, broker: Broker, **headers: str) -> None:
        self.base = broker.metrics_url.removesuffix("/metrics")
        self.headers = headers
        self.last: Message = Message()  # the headers of the last answer

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} if body is not None else {}
        request = urllib.request.Request(self.base + path, data=data, headers={**given, **self.headers, **headers})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                self.last = answer.headers
                return answer.status, read(answer.read())
        except urllib.error.HTTPError as error:
            self.last = error.headers
            return error.code, read(error.read())

    def get(self, path: str) -> tuple[int, Any]:
        return self.ask(f"/api/v1{path}")

    def page(self, path: str) -> tuple[int, str]:
        status, body = self.ask(path, Accept="text/html")
        return status, str(body)

    def sign_in(self, user: str, password: str) -> tuple[int, Any]:
        status, found = self.ask("/api/v1/session", {"user": user, "password": password})
        if status == 200:
            self.headers = {"Cookie": self.last["Set-Cookie"].partition(";")[0]}
        return status, found


def as_user(broker: Broker, user: str, password: str) -> Visitor:
    visitor = Visitor(broker)
    status, found = visitor.sign_in(user, password)
    assert (status, found["principal"]) == (200, f"User:{user}")
    return visitor


def basic(user: str, password: str) -> str:
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


PATHS = {"topic": "orders", "group": "billing", "partition": "0", "offset": "0", "level": "1", "bucket": "0"}
CLOSED = [each for each in ENDPOINTS if each.needs != OPEN]


def test_every_view_and_endpoint_says_what_it_needs() -> None:
    assert {each.path for each in ENDPOINTS if each.needs == OPEN} == {"/session", "/session/end"}
    assert {each.path for each in VIEWS if needs_of(each) == EACH} == {
        *("/topics", "/groups", "/transactions", "/producers", "/schedules")
    }
    for each in ENDPOINTS:
        name = getattr(each.needs, "at", "")
        assert not name or f"{{{name}}}" in each.path


def test_nobody_sees_anything_without_a_login(broker: Broker) -> None:
    stranger = Visitor(broker)
    for endpoint in CLOSED:
        status, found = stranger.ask(f"/api/v1{endpoint.path.format(**PATHS)}", None if endpoint.body is None else {})
        assert (status, found) == (401, {"error": "clients of this broker must log in"})
        assert stranger.last["WWW-Authenticate"].startswith("Bearer")  # browsers do not ask by themselves
    for view in VIEWS:
        status, body = stranger.page(view.path.format(**PATHS))
        assert status == 401
        assert "Sign in" in body
        assert "orders" not in body.replace('href="/topics', "")
        assert "<nav" not in body
    assert stranger.ask("/healthz")[0] == 200
    assert stranger.get("/session") == (
        200,
        {"principal": "", "asks": True, "by_password": True, "by_token": False},
    )


def test_a_user_without_rights_sees_nothing_of_others(broker: Broker, admin: Admin) -> None:
    bob = as_user(broker, *BOB)
    for endpoint in CLOSED:
        status, found = bob.ask(f"/api/v1{endpoint.path.format(**PATHS)}", None if endpoint.body is None else {})
        if endpoint.needs == EACH:
            assert status == 200
            assert "orders" not in json.dumps(found)
            assert "secrets" not in json.dumps(found)
        else:
            assert status == 403
            assert "User:bob has no right to" in found["error"]
    # Whether there is such a topic is not told.
    errors = [bob.get(f"/topics/{name}")[1]["error"] for name in ("orders", "nothing")]
    assert errors[0].replace("orders", "nothing") == errors[1]
    body = bob.page("/topics")[1]
    assert ">orders<" not in body
    assert 'href="/connections"' not in body  # the navigation has what bob may see
    assert bob.page("/connections")[0] == 403


def test_rights_come_and_go_with_each_request(broker: Broker, admin: Admin) -> None:
    bob = as_user(broker, *BOB)
    assert bob.get("/topics/orders/records")[0] == 403
    allow(admin, ResourceKind.TOPIC, "orders", Operation.READ)
    assert [each["name"] for each in bob.get("/topics")[1]["topics"]] == ["orders"]
    assert bob.get("/topics/orders/records")[1]["records"][0]["value"]["text"] == "value"
    assert bob.get("/topics/secrets/records")[0] == 403
    assert bob.get("/topics/orders")[1]["settings"] == []  # that is DESCRIBE_CONFIGS
    assert bob.get("/connections")[0] == 403
    allow(admin, ResourceKind.CLUSTER, "kafka-cluster", Operation.DESCRIBE)
    assert bob.get("/connections")[0] == 200
    assert bob.get("/settings")[0] == 403
    admin.delete_acls([Filter()]).check()
    assert bob.get("/topics/orders/records")[0] == 403
    assert bob.get("/topics")[1]["topics"] == []


def test_a_stream_ends_with_the_right_to_it(broker: Broker, admin: Admin) -> None:
    allow(admin, ResourceKind.CLUSTER, "kafka-cluster", Operation.DESCRIBE)
    bob = as_user(broker, *BOB)
    request = urllib.request.Request(f"{bob.base}/api/v1/wheel/events", headers=bob.headers)
    with urllib.request.urlopen(request, timeout=60) as stream:
        assert stream.readline() == b"retry: 1000\n"
        admin.delete_acls([Filter()]).check()
        stream.read()  # to its end


def test_what_the_page_changes_is_up_to_the_rights_of_the_user(broker: Broker, admin: Admin) -> None:
    bob, root = as_user(broker, *BOB), as_user(broker, *ROOT)
    record = {"records": [{"value": "from the page", "partition": 0}]}
    assert bob.ask("/api/v1/topics/orders/records", record)[0] == 403
    allow(admin, ResourceKind.TOPIC, "orders", Operation.WRITE)
    status, found = bob.ask("/api/v1/topics/orders/records", record)
    assert (status, found["written"]) == (200, 1)
    assert bob.get("/topics/orders/records")[0] == 403  # writing is not reading
    goal = {"to": "earliest", "topic": "orders"}
    assert bob.ask("/api/v1/groups/billing/offsets/preview", goal)[0] == 403
    status, found = root.ask("/api/v1/groups/billing/offsets/preview", goal)
    assert status == 200
    changes = {"changes": found["changes"]}
    assert root.ask("/api/v1/groups/billing/offsets", changes)[0] == 200
    assert bob.ask("/api/v1/groups/billing/offsets", changes)[0] == 403
    allow(admin, ResourceKind.GROUP, "billing", Operation.DESCRIBE)
    allow(admin, ResourceKind.TOPIC, "secrets", Operation.DESCRIBE)
    found = bob.get("/groups/billing")[1]
    assert found["offsets_count"] == 1  # of orders: the right to write is one to describe
    admin.delete_acls([Filter(ResourceKind.TOPIC)]).check()
    assert bob.get("/groups/billing")[1]["offsets_count"] == 0


def test_a_session_ends(broker: Broker) -> None:
    bob = as_user(broker, *BOB)
    attributes = {part.strip() for part in bob.last["Set-Cookie"].split(";")[1:]}
    assert attributes == {"Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict"}
    assert bob.get("/session")[1]["principal"] == "User:bob"
    assert "bob" in bob.page("/topics")[1]
    assert bob.ask("/api/v1/session/end", {})[0] == 200
    assert "Max-Age=0" in bob.last["Set-Cookie"]
    assert bob.get("/topics")[0] == 401  # also with the old cookie
    assert bob.get("/session")[1]["principal"] == ""


def test_a_session_ends_with_the_credential(broker: Broker, admin: Admin) -> None:
    admin.alter_user_scram_credentials([ScramUpsertion("sue", "first", "SCRAM-SHA-256")]).check()
    sue = as_user(broker, "sue", "first")
    script = Visitor(broker, Authorization=basic("sue", "first"))
    assert (sue.get("/topics")[0], script.get("/topics")[0]) == (200, 200)
    admin.alter_user_scram_credentials([ScramUpsertion("sue", "second", "SCRAM-SHA-256")]).check()
    assert (sue.get("/topics")[0], script.get("/topics")[0]) == (401, 401)
    sue = as_user(broker, "sue", "second")
    admin.alter_user_scram_credentials([ScramDeletion("sue", "SCRAM-SHA-256")]).check()
    assert sue.get("/topics")[0] == 401
    assert sue.sign_in("sue", "second")[0] == 401


def test_scripts_send_their_login_with_each_request(broker: Broker) -> None:
    script = Visitor(broker, Authorization=basic(*ROOT))
    assert {"orders", "secrets"} <= {each["name"] for each in script.get("/topics")[1]["topics"]}
    assert script.get("/session")[1]["principal"] == "User:root"
    for wrong in (basic("root", "b-secret"), "Basic !", "Basic", "Digest x", "Bearer", "Bearer a.b.c", basic("", "")):
        assert Visitor(broker, Authorization=wrong).get("/topics")[0] == 401, wrong


WRONG = (
    *(("root", ""), ("root", "r-secret "), ("nobody", "r-secret"), ("", ""), ("a\0b", "c\0d"), ("\ud800", "x")),
    *(("r" * 5000, "x"), ("=2C,n=root", "r-secret"), ("root", "x" * 5000)),
)


@pytest.mark.parametrize(("user", "password"), WRONG)
def test_whatever_is_wrong_with_a_login_the_answer_is_the_same(broker: Broker, user: str, password: str) -> None:
    visitor = Visitor(broker)
    assert visitor.sign_in(user, password) == (401, {"error": "wrong user name or password"})
    assert "Set-Cookie" not in visitor.last


def test_a_body_that_is_no_login_is_refused(broker: Broker) -> None:
    visitor = Visitor(broker)
    bodies: tuple[Any, ...] = ({}, {"user": "root", "token": "x"}, {"user": 1}, {"name": "root"}, [])
    for body in bodies:
        assert visitor.ask("/api/v1/session", body)[0] == 400
    assert visitor.ask("/api/v1/session", {"user": "root"}, Origin="http://evil.example")[0] == 403
    for cookie in ("ixion", "=", "a=b; ixion-1=x", f"{'x' * 3000}={'y' * 3000}"):
        assert Visitor(broker, Cookie=cookie).get("/topics")[0] == 401


def test_guesses_are_slow_and_few(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "MOST", 3)
    monkeypatch.setattr(door, "FAILED_S", 0.05)

    visitor = Visitor(broker)
    codes = [visitor.sign_in("root", f"guess {number}")[0] for number in range(20)]
    assert codes[-1] == 429
    assert visitor.sign_in(*ROOT)[0] == 429  # the right one, too: it would tell


@pytest.mark.parametrize("guesses", ["header", "cookie"])
def test_guesses_find_no_session_of_a_script(broker: Broker, monkeypatch: pytest.MonkeyPatch, guesses: str) -> None:
    """Such a session is found by the password itself, which a stranger could try again and again."""
    script = Visitor(broker, Authorization=basic(*ROOT))
    assert script.get("/topics")[0] == 200
    monkeypatch.setattr(attempts, "MOST", 0)
    port = broker.metrics_url.removesuffix("/metrics").rpartition(":")[2]
    guess = basic(*ROOT)
    headers = {"Authorization": guess} if guesses == "header" else {"Cookie": f"ixion-{port}={guess}"}
    assert Visitor(broker, **headers).get("/topics")[0] == (429 if guesses == "header" else 401)


def test_a_tail_that_ends_with_the_right_is_no_fault(
    broker: Broker, admin: Admin, caplog: pytest.LogCaptureFixture
) -> None:
    allow(admin, ResourceKind.TOPIC, "orders", Operation.READ)
    bob = as_user(broker, *BOB)
    request = urllib.request.Request(f"{bob.base}/api/v1/topics/orders/tail", headers=bob.headers)
    with urllib.request.urlopen(request, timeout=60) as stream:
        assert stream.readline() == b"retry: 2000\n"
        admin.delete_acls([Filter()]).check()
        with Producer(broker.bootstrap) as producer:
            producer.send("orders", b"after the right")
        assert b"after the right" not in stream.read()
    assert "a stream failed" not in caplog.text


def test_a_bearer_token_is_a_login(tmp_path: Path) -> None:
    provider = Provider()
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": provider.write(tmp_path / "keys.json"),
    }
    with Broker(settings, metrics=True) as broker:
        alice = Visitor(broker)
        assert alice.get("/session")[1] == {"principal": "", "asks": True, "by_password": False, "by_token": True}
        assert "bearer token" in alice.page("/")[1]
        refused = {"error": "the token is not accepted"}
        assert alice.ask("/api/v1/session", {"token": provider.token(lives_s=-100)}) == (401, refused)
        assert alice.ask("/api/v1/session", {"token": "x\x01auth=Bearer y"}) == (401, refused)
        assert alice.sign_in("alice", "password")[0] == 401
        assert alice.ask("/api/v1/session", {"token": provider.token()})[1]["principal"] == "User:alice"
        script = Visitor(broker, Authorization=f"Bearer {provider.token()}")
        assert script.get("/connections")[0] == 200  # without an authorizer every user has all rights


def test_passwords_are_not_sent_in_plain_text_over_a_network(broker: Broker) -> None:
    async def look(real: RealBroker) -> str:
        return closed(real.parts, cast(WebServer, SimpleNamespace(only_here=False, is_secure=False)))

    assert "plain text" in broker.call(look)


def test_the_page_is_closed_where_users_have_certificates_only(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    settings = {
        "listeners": "SSL://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "SSL:SSL,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "ssl.keystore.location": authority.sign("broker", "/CN=broker"),
        "ssl.truststore.location": authority.certificate,
        "listener.name.ssl.ssl.client.auth": "required",
    }
    with Broker(settings, metrics=True) as broker:
        visitor = Visitor(broker)
        assert visitor.page("/topics")[0] == 403
        status, found = visitor.get("/topics")
        assert status == 403
        assert "certificate" in found["error"]
