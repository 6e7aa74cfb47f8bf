"""Settings of TLS change while the broker runs, for one listener; new connections have them."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.clients import Admin
from ixion.clients.admin.configs import Resource
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.resource_type import ResourceType
from tests.security.secured import Secured

PREFIX = "listener.name.ssl."


class Changed(Secured):
    def change(self, **values: str | None) -> None:
        """KafkaError if the broker refuses."""
        with Admin(self.broker.bootstrap) as admin:
            broker = Resource(ResourceType.BROKER, str(admin.describe_cluster().nodes[0].node_id))
            named = {PREFIX + "ssl." + name.replace("_", "."): value for name, value in values.items()}
            admin.alter_configs({broker: named}).check()

    def is_served(self, *, certificate: bool = False, highest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bool:
        """Whether a client is let in, with TLS up to `highest`."""
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        context.maximum_version = highest
        if certificate:
            context.load_cert_chain(self.client)
        host, _, port = self.address("SSL").rpartition(":")
        try:
            with (
                socket.create_connection((host, int(port)), timeout=60) as plain,
                context.wrap_socket(plain, server_hostname=host) as client,
            ):
                client.sendall(bytes.fromhex("0000000a 0012 0000 00000001 ffff"))  # ApiVersions
                return len(client.recv(4)) == 4
        except (ssl.SSLError, ConnectionError):
            return False


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Changed]:
    made = Changed(tmp_path_factory.mktemp("certificates"))
    with made.broker:
        yield made


def test_certificates_of_clients_can_be_required(secured: Changed) -> None:
    assert secured.is_served()
    secured.change(client_auth="required")
    assert not secured.is_served()
    assert secured.is_served(certificate=True)
    secured.change(client_auth=None)
    assert secured.is_served()


def test_old_versions_can_be_disabled(secured: Changed) -> None:
    old = ssl.TLSVersion.TLSv1_2
    assert secured.is_served(highest=old)
    secured.change(enabled_protocols="TLSv1.3")
    assert not secured.is_served(highest=old)
    assert secured.is_served()
    secured.change(enabled_protocols=None)
    assert secured.is_served(highest=old)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cipher_suites", "ROT13"),
        ("enabled_protocols", ""),
        ("enabled_protocols", "SSLv3"),
        ("client_auth", "perhaps"),
        ("protocol", "SSL"),
        ("provider", "BCJSSE"),
        ("engine_factory_class", "org.example.Engine"),
    ],
)
def test_what_cannot_work_is_refused_and_changes_nothing(secured: Changed, name: str, value: str) -> None:
    with pytest.raises(KafkaError) as refused:
        secured.change(**{name: value})
    assert refused.value.code is ErrorCode.INVALID_REQUEST  # as Kafka answers for settings of brokers
    assert "ssl." + name.replace("_", ".") in refused.value.message
    assert secured.is_served(highest=ssl.TLSVersion.TLSv1_2)


def test_certificates_cannot_be_required_without_an_authority(tmp_path: Path) -> None:
    secured = Changed(tmp_path)
    with secured.broker, pytest.raises(KafkaError, match=r"ssl\.client\.auth=required"):
        secured.change(client_auth="required", truststore_location="")
