"""Every fault of the field that has a number and could be ours, as a test with that number.

What a number needs more than a few lines for is in the file of its part: `ELSEWHERE` names these tests, and one test
here looks whether they still exist.
"""

from __future__ import annotations

import ast
import hmac
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

import ixion
from ixion.config.dynamic import DynamicConfig, Level
from ixion.config.errors import InvalidSettingError
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k72_push_telemetry import PushTelemetryRequest
from ixion.language.records.compression import Codec, inflate
from ixion.language.sasl.exchange import SaslRefusedError
from ixion.language.sasl.oauthbearer import Bearer, OAuthBearerExchange
from ixion.language.sasl.plain import PlainExchange
from ixion.language.sasl.scram import ScramExchange, new_credential
from ixion.language.sasl.scram_client import ScramClient, ScramUser

TESTS = Path(__file__).parents[1]
SOURCE = Path(ixion.__file__).parent
SCRAM = "SCRAM-SHA-256"
XERIAL = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01"

ELSEWHERE = {
    "CVE-2018-1288": "apis/guards/test_rights.py::test_a_client_that_calls_itself_a_follower_needs_cluster_action",
    "CVE-2018-17196": "apis/guards/test_rights.py::test_transactional_records_need_the_transactional_id",
    "CVE-2022-34917": "protocol/test_hostile.py::test_twelve_bytes_that_promise_two_billion_topics",
    "CVE-2026-111108": "protocol/test_hostile.py::test_nested_flood",
    "CVE-2026-111115": "protocol/test_hostile.py::test_tagged_field_flood_in_the_header_before_anyone_logged_in",
    "CVE-2023-34455": "records/test_bombs.py::test_a_lie_about_sizes_allocates_nothing",
    "CVE-2023-43642": "records/test_bombs.py::test_a_bomb_is_stopped_while_it_grows",
    "CVE-2024-27309": "acl/test_rules.py::test_a_rule_that_goes_leaves_the_others_of_the_resource",
    "CVE-2024-27309, restarts": "acl/test_model.py::test_every_decision_is_that_of_a_naive_evaluator",
    "CVE-2026-33557": "security/test_bearer_tokens.py::test_a_broker_without_keys_does_not_start",
    "CVE-2026-110985": "security/test_bearer_tokens.py::test_a_token_that_is_not_good",
    "CVE-2025-27819, classes of TLS": "security/test_dynamic_tls.py::"
    "test_what_cannot_work_is_refused_and_changes_nothing",
    "CVE-2025-27817": "security/test_bearer_tokens.py::test_addresses_that_are_not_allowed",
    "CVE-2025-27817, redirections": "security/test_bearer_tokens.py::test_no_redirection_is_followed",
    "CVE-2026-35554": "clients/core/test_outbox.py::test_one_that_expires_in_flight_keeps_its_bytes_and_its_place",
    "CVE-2026-35554, histories": "clients/core/test_histories.py::"
    "test_when_time_runs_out_nothing_is_doubled_or_overtaken",
    "CVE-2026-41727": "delay/test_schedule.py::test_a16_limits_are_enforced_when_a_record_is_accepted",
    "CVE-2026-41727, forged": "delay/test_attack.py::test_a_client_cannot_pretend_to_be_the_broker",
}


@pytest.mark.parametrize("number", ELSEWHERE)
def test_the_tests_elsewhere_exist(number: str) -> None:
    file, _, name = ELSEWHERE[number].partition("::")
    tree = ast.parse((TESTS / file).read_text())
    assert name in {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}


def test_cve_2026_111073_compressed_telemetry_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metrics of clients are dropped as they are: nothing inflates them."""
    from ixion.broker.apis import k72_push_telemetry as handler
    from ixion.language.records import compression

    def fail(*_: Any) -> Any:
        raise AssertionError("unpacked")

    monkeypatch.setattr(compression, "inflate", fail)
    bomb = zlib.compress(bytes(5_000_000), 1)
    request = PushTelemetryRequest(
        client_instance_id=b"c" * 16, subscription_id=0, terminating=False, compression_type=1, metrics=bomb
    )
    assert handler.check(request) == ErrorCode.NONE
    assert "compression import" not in Path(handler.__file__).read_text()


@pytest.mark.parametrize("size", [-1, -(2**31), 0x7FFFFFFF, 1_000_000])
def test_cve_2023_34455_chunks_of_snappy_with_absurd_sizes(size: int) -> None:
    with pytest.raises(KafkaError) as caught:
        inflate(Codec.SNAPPY, XERIAL + size.to_bytes(4, "big", signed=True) + bytes(100))
    assert caught.value.code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


@pytest.mark.parametrize(
    "name",
    [
        "sasl.oauthbearer.jwks.endpoint.url",
        "listener.name.sasl_ssl.sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.token.endpoint.url",
        "listener.name.sasl_ssl.sasl.oauthbearer.token.endpoint.url",
        "listener.name.sasl_ssl.plain.sasl.jaas.config",
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config",
        "authorizer.class.name",
    ],
)
def test_cve_2023_25194_and_2025_27818_27819_no_client_sets_what_is_loaded(name: str) -> None:
    """Login modules, addresses and classes are chosen at the start, by the owner of the process."""
    config = DynamicConfig({})
    for level in Level:
        with pytest.raises(InvalidSettingError):
            config.validate(level, {name: "com.sun.security.auth.module.JndiLoginModule required;"})


def test_cve_2023_25194_nothing_runs_what_it_reads() -> None:
    """No pickle, no eval, and modules are imported by name only from lists of ours."""
    dangerous = re.compile(r"\b(pickle|marshal|shelve)\b\.?|(?<![\w.])(eval|exec)\(|yaml\.load\(|__import__\(")
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        for line in path.read_text().splitlines()
        if dangerous.search(line) and not line.lstrip().startswith("#")
    ]
    ours = [line for line in found if not re.match(r"(spark|pipelines)/", line)]
    assert [line.partition(":")[0] for line in ours] == ["language/protocol/notation.py"]  # of its own class bodies


def login() -> tuple[ScramExchange, ScramClient]:
    credential = new_credential(SCRAM, "secret")
    server = ScramExchange(SCRAM, lambda name: credential if name == "alice" else None)
    return server, ScramClient(ScramUser(SCRAM, "alice", "secret"))


def test_cve_2024_56128_the_last_message_has_the_nonce_of_this_exchange() -> None:
    server, client = login()
    proof = client.step(server.step(client.first()))
    assert proof is not None
    nonce = re.search(rb"r=([^,]+)", proof)
    assert nonce is not None
    for other in (nonce[1][:-1], nonce[1] + b"x", b""):
        server, client = login()
        proof = client.step(server.step(client.first()))
        assert proof is not None
        with pytest.raises(SaslRefusedError):
            server.step(re.sub(rb"r=[^,]+", b"r=" + other, proof, count=1))
        assert server.user is None


@pytest.mark.parametrize("count", [1, 4_095, 131_073, 2**31, 10**30])
def test_cve_2026_10143_a_broker_cannot_make_a_client_compute_for_ever(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ixion.language.sasl import scram_client

    def fail(*_: Any) -> bytes:
        raise AssertionError("computed")

    monkeypatch.setattr(scram_client, "salted_password", fail)
    client = ScramClient(ScramUser(SCRAM, "alice", "secret"), nonce="abc")
    client.first()
    with pytest.raises(SaslRefusedError, match="iterations"):
        client.step(f"r=abcdef,s=c2FsdA==,i={count}".encode())


def test_cve_2017_12610_acting_as_another_user_is_refused() -> None:
    with pytest.raises(SaslRefusedError):
        PlainExchange({"alice": "a", "root": "r"}).step(b"root\0alice\0a")
    server, _ = login()
    with pytest.raises(SaslRefusedError):
        server.step(b"n,a=root,n=alice,r=abc")
    bearer = OAuthBearerExchange(lambda _: Bearer("alice", 1))
    with pytest.raises(SaslRefusedError):
        bearer.step(b"n,a=root,\x01auth=Bearer x\x01\x01")


def test_cve_2021_38153_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def compare(left: bytes, right: bytes) -> bool:
        compared.append((left, right))
        return real(left, right)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    PlainExchange({"alice": "secret"}).step(b"\0alice\0secret")
    assert compared == [(b"secret", b"secret")]
    with pytest.raises(SaslRefusedError):
        PlainExchange({}).step(b"\0nobody\0secret")  # an unknown user takes as long
    assert len(compared) == 2
    server, client = login()
    proof = client.step(server.step(client.first()))
    assert proof is not None
    client.step(server.step(proof))
    assert len(compared) == 4  # the proof of the client, and the signature of the broker
