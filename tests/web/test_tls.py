"""The live page by HTTPS, with the certificate of a listener."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from ixion.broker.startup.errors import StartupError
from ixion.testing import Broker
from tests.security.certificates import Authority

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


def settings(authority: Authority) -> dict[str, object]:
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "ssl.keystore.location": authority.sign("broker", "/CN=broker"),
        "ssl.truststore.location": authority.certificate,
        "ssl.client.auth": "required",  # of Kafka clients; browsers have no certificate
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN} user_root="r-secret";',
        "web.tls.listener": "SASL_SSL",
    }


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Iterator[Broker]:
    with Broker(settings(authority), metrics=True) as running:
        yield running


def connect(broker: Broker, authority: Authority) -> http.client.HTTPSConnection:
    address = urlsplit(broker.metrics_url)
    assert address.scheme == "https"
    trusted = ssl.create_default_context(cafile=str(authority.certificate))
    return http.client.HTTPSConnection(address.hostname or "", address.port, timeout=60, context=trusted)


def test_a_user_signs_in_by_https_and_the_cookie_stays_there(broker: Broker, authority: Authority) -> None:
    to = connect(broker, authority)
    to.request("GET", "/topics", headers={"Accept": "text/html"})
    answer = to.getresponse()
    assert (answer.status, b"Sign in" in answer.read()) == (401, True)
    login = json.dumps({"user": "root", "password": "r-secret"})
    to.request("POST", "/api/v1/session", login, {"Content-Type": "application/json"})
    answer = to.getresponse()
    answer.read()
    cookie, *attributes = (answer.headers["Set-Cookie"] or "").split("; ")
    assert cookie.startswith("__Host-ixion-")
    assert set(attributes) == {"Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict", "Secure"}
    to.request("GET", "/api/v1/topics", headers={"Cookie": cookie})
    answer = to.getresponse()
    assert (answer.status, json.load(answer)["topics"]) == (200, [])
    to.close()


def test_those_that_do_not_shake_hands_make_room(broker: Broker, authority: Authority) -> None:
    address = urlsplit(broker.metrics_url)
    silent = [socket.create_connection((address.hostname or "", address.port or 0)) for _ in range(150)]
    silent[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")  # no TLS
    to = connect(broker, authority)
    to.request("GET", "/healthz")
    assert to.getresponse().status == 200
    to.close()
    assert silent[0].recv(1) == b""  # the oldest was closed
    for each in silent:
        each.close()


def test_it_must_be_a_listener_with_tls(authority: Authority) -> None:
    for name in ("PLAINTEXT", "nothing"):
        with pytest.raises(StartupError, match=r"web\.tls\.listener.*SASL_SSL"):
            Broker({**settings(authority), "web.tls.listener": name}, metrics=True).start()
