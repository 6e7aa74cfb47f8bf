"""What a signed token must have to be worth something, and where the keys may come from."""

from __future__ import annotations

import base64
import http.server
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.security.bearer_tokens import LATEST_S, BearerTokens, Expected
from ixion.broker.security.key_set import KeySet
from ixion.broker.startup.mechanisms import Logins, mechanisms_of
from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError
from ixion.language.sasl.exchange import SaslRefusedError
from tests.security.certificates import Authority
from tests.security.identity_provider import ISSUER, Provider


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


@pytest.fixture
def keys(provider: Provider, tmp_path: Path) -> KeySet:
    return KeySet(provider.write(tmp_path / "keys.json"), 3_600)


DEEP = "deep"
STRICT = Expected(issuer=ISSUER, audience=("kafka", "other"), skew_s=0)


def test_a_good_token(provider: Provider, keys: KeySet) -> None:
    tokens = BearerTokens(keys, STRICT)
    for token in (
        provider.token(),
        provider.token(algorithm="PS512"),
        provider.token(algorithm="ES256", key_id="e1"),
        provider.token(key_id=None),
        provider.token(aud=["x", "kafka"]),
        provider.token(scope=["a", "b"]),
        provider.token(scope=None),
    ):
        assert tokens.validate(token).user == "alice"
    assert BearerTokens(keys, Expected(user_claim="name")).validate(provider.token(name="bob", iss=None)).user == "bob"
    assert BearerTokens(keys, Expected(skew_s=30)).validate(provider.token(lives_s=-10)).user == "alice"


BAD: dict[str, tuple[Callable[[Provider], str], str]] = {
    "expired": (lambda p: p.token(lives_s=-1), "expired"),
    "without expiry": (lambda p: p.token(exp=None), "lacks"),
    "not yet": (lambda p: p.token(nbf=2**33), "not valid yet"),
    "other issuer": (lambda p: p.token(iss="https://other"), "another issuer"),
    "no issuer": (lambda p: p.token(iss=None), "lacks"),
    "other audience": (lambda p: p.token(aud="web"), "another audience"),
    "no audience": (lambda p: p.token(aud=None), "lacks"),
    "no user": (lambda p: p.token(sub=None), "has no user"),
    "empty user": (lambda p: p.token(sub=" "), "has no user"),
    "long user": (lambda p: p.token(sub="x" * 2_000), "has no user"),
    "scope of numbers": (lambda p: p.token(scope=[1]), "not text"),
    "unknown key": (lambda p: p.token(key_id="r2"), "an unknown key"),
    "key of another kind": (lambda p: p.token(key_id="e1"), "an unknown key"),
    "other algorithm than the key's": (lambda p: p.token(algorithm="ES256", key_id="r1"), "an unknown key"),
    "signed with another key": (lambda p: Provider().token(), "signature"),
    "unsigned": (lambda p: p.token(algorithm="none", key=""), "not accepted"),
    "signature cut off": (lambda p: p.token().rpartition(".")[0] + ".", "signature"),
    "no token": (lambda p: "x.y", "not a signed token"),
    "hmac": (lambda p: p.token(algorithm="HS256", key="k" * 64), "not accepted"),
    "expiry in quotes": (lambda p: p.token(exp="9999999999"), "not a number"),
    "endless expiry": (lambda p: p.token(exp=float("inf")), "not valid"),
    "key id of a file": (lambda p: p.token(key_id="../../keys.json"), "an unknown key"),
    "a key in the header": (lambda p: with_header(p, alg="RS256", jwk={"kty": "oct", "k": "AA"}), "signature"),
    "keys elsewhere": (lambda p: with_header(p, alg="RS256", kid="r1", jku="https://evil.example/"), "signature"),
    "a condition": (lambda p: with_header(p, alg="RS256", kid="r1", crit=["b64"], b64=False), "not a signed|signature"),
    "list of algorithms": (lambda p: with_header(p, alg=["RS256", "none"]), "not accepted"),
    "zeros for a signature": (lambda p: with_header(p, "A" * 86, alg="ES256", kid="e1"), "signature"),
    "deep header": (lambda p: with_header(p, alg="RS256", kid="r1", deep=DEEP), "not a signed token|signature"),
}


def with_header(provider: Provider, signature: str | None = None, **header: Any) -> str:
    """A good token with another header, and another signature if one is given."""
    _, claims, signed = provider.token().split(".")
    text = json.dumps(header).replace(json.dumps(DEEP), "[" * 20_000 + "]" * 20_000)
    first = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    return f"{first}.{claims}.{signed if signature is None else signature}"


def test_a_late_expiry_is_bounded(provider: Provider, keys: KeySet) -> None:
    """It goes into a field of 64 bits."""
    for expiry in (10**30, 1e300):
        assert BearerTokens(keys, STRICT).validate(provider.token(exp=expiry)).expires_ms == LATEST_S * 1_000


@pytest.mark.parametrize("name", BAD)
def test_a_token_that_is_not_good(provider: Provider, keys: KeySet, name: str) -> None:
    make, reason = BAD[name]
    token = make(provider)
    with pytest.raises(SaslRefusedError, match=reason) as caught:
        BearerTokens(keys, STRICT).validate(token)
    assert token not in str(caught.value)


def test_claims_cannot_be_changed_behind_the_signature(provider: Provider, keys: KeySet) -> None:
    header, claims, signature = provider.token().split(".")
    padded = claims + "=" * (-len(claims) % 4)
    changed = json.loads(base64.urlsafe_b64decode(padded)) | {"sub": "root"}
    forged = base64.urlsafe_b64encode(json.dumps(changed).encode()).decode().rstrip("=")
    with pytest.raises(SaslRefusedError, match="signature"):
        BearerTokens(keys, STRICT).validate(f"{header}.{forged}.{signature}")


def test_a_token_without_a_key_id_needs_a_set_with_one_key_that_fits(provider: Provider, tmp_path: Path) -> None:
    two = {"keys": [*provider.key_set(only="rsa")["keys"], *Provider().key_set(only="rsa", rsa_id="r2")["keys"]]}
    (tmp_path / "two.json").write_text(json.dumps(two))
    tokens = BearerTokens(KeySet((tmp_path / "two.json").as_uri(), 3_600), STRICT)
    assert tokens.validate(provider.token()).user == "alice"
    with pytest.raises(SaslRefusedError, match="an unknown key"):
        tokens.validate(provider.token(key_id=None))


def test_a_file_that_changes_is_read_again(provider: Provider, tmp_path: Path) -> None:
    place = tmp_path / "keys.json"
    keys = KeySet(provider.write(place), 3_600)
    after = Provider()
    after.write(place, rsa_id="new one")
    assert keys.find("new one", "RS256") is None
    keys.look()
    assert BearerTokens(keys, STRICT).validate(after.token(key_id="new one")).user == "alice"
    assert keys.find("r1", "RS256") is None
    place.write_text("half of")
    keys.look()
    assert keys.find("new one", "RS256") is not None  # they stay as they were
    place.unlink()
    keys.look()
    assert keys.find("new one", "RS256") is not None


@contextmanager
def https(tmp_path: Path, answers: list[tuple[int, bytes]]) -> Iterator[tuple[str, ssl.SSLContext]]:
    """A server that gives these answers in turn, the last one again and again, and a context that trusts it."""
    authority = Authority(tmp_path)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(status)
            if status == 302:
                self.send_header("Location", body.decode())
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.sign("provider", "/CN=provider"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        trusting = ssl.create_default_context(cafile=str(authority.certificate))
        yield f"https://127.0.0.1:{server.server_port}/keys", trusting
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_keys_from_an_address(provider: Provider, tmp_path: Path) -> None:
    first, second = json.dumps(provider.key_set()).encode(), json.dumps(provider.key_set(rsa_id="r2")).encode()
    with https(tmp_path, [(200, first), (500, b""), (200, second)]) as (url, context):
        keys = KeySet(url, 3_600, context=context)
        assert keys.find("r1", "RS256") is not None
        assert keys.find("r2", "RS256") is None
        assert keys.wanted
        keys.look()  # asked a moment ago: not again so soon
        assert keys.find("r2", "RS256") is None
        for _ in range(2):  # the first fails, and nothing changes
            keys._read_s -= 60
            keys.wanted = True
            assert keys.find("r1", "RS256") is not None
            keys.look()
        assert keys.find("r2", "RS256") is not None
        with pytest.raises(ValueError, match="cannot be read"):
            KeySet(url, 3_600)  # the authority is not one of the system's


def test_an_address_that_never_ends_its_answer_is_given_up(tmp_path: Path) -> None:
    """Each byte comes in time, but not all of them do."""
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.sign("provider", "/CN=provider"))
    listening = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        found, _ = listening.accept()
        with found, suppress(OSError), context.wrap_socket(found, server_side=True) as client:
            client.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while True:
                client.sendall(b"x")
                time.sleep(0.01)

    thread = threading.Thread(target=drip)
    thread.start()
    trusting = ssl.create_default_context(cafile=str(authority.certificate))
    with listening, pytest.raises(ValueError, match=r"cannot be read|not a JSON Web Key Set"):
        KeySet(f"https://127.0.0.1:{listening.getsockname()[1]}/", 60, context=trusting, all_patience_s=0.5)
    thread.join(60)
    assert not thread.is_alive()


def test_no_redirection_is_followed(provider: Provider, tmp_path: Path) -> None:
    elsewhere = provider.write(tmp_path / "keys.json").encode()
    with https(tmp_path, [(302, elsewhere)]) as (url, context), pytest.raises(ValueError, match="responds 302"):
        KeySet(url, 3_600, context=context)


@pytest.mark.parametrize(
    "url", ["http://x/keys", "ftp://x/keys", "keys.json", "https://", "https://u:p@x/", "file://x/k"]
)
def test_addresses_that_are_not_allowed(url: str) -> None:
    with pytest.raises(ValueError, match="https URL"):
        KeySet(url, 3_600)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"keys": []}',
        '{"keys": [{"kty": "oct", "k": "x"}]}',
        '{"keys": 1}',
        "x" * (1 << 21),
        "[" * 200_000,
    ],
    ids=range(8),
)
def test_sets_that_are_none(tmp_path: Path, text: str) -> None:
    place = tmp_path / "keys.json"
    place.write_text(text)
    with pytest.raises(ValueError, match=r"a JSON Web Key Set|public keys|more than"):
        KeySet(place.as_uri(), 3_600)


def mechanisms(**settings: str) -> None:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    mechanisms_of(BrokerConfig({"sasl.enabled.mechanisms": "OAUTHBEARER", **given}), "SASL_SSL", Logins())


def test_a_broker_without_keys_does_not_start(provider: Provider, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url"):
        mechanisms()
    with pytest.raises(InvalidSettingError, match="No such file"):
        mechanisms(sasl_oauthbearer_jwks_endpoint_url=(tmp_path / "none").as_uri())
    with pytest.raises(InvalidSettingError, match="https URL"):
        mechanisms(sasl_oauthbearer_jwks_endpoint_url="http://127.0.0.1/keys")
    mechanisms(sasl_oauthbearer_jwks_endpoint_url=provider.write(tmp_path / "keys.json"))


def test_kerberos_is_refused_by_name() -> None:
    with pytest.raises(InvalidSettingError, match=r"GSSAPI \(Kerberos\), Kafka's default, is not supported"):
        mechanisms_of(BrokerConfig({}), "SASL_SSL", Logins())
