"""The brokers that are compared, with TLS, SCRAM, an authorizer with 1,000 rules, and quotas: the same for both.

Clients of the listeners PLAINTEXT and SSL are super users; SASL_PLAINTEXT is for `bench`, a user with rules.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.loads.broker_servers import Server
from devtools.kafka import RealKafka, answers, free_port
from ixion.clients import Admin
from ixion.clients.admin.users import ScramUpsertion
from ixion.language.model.acl_binding import Binding, Entry, ResourcePattern
from ixion.language.model.acl_names import Operation, PatternKind, Permission, ResourceKind

USER, PASSWORD, MECHANISM = "bench", "bench-secret", "SCRAM-SHA-512"
ITERATIONS = 4096
RULES = 1_000
QUOTA = 2_000_000  # bytes a second, of clients that call themselves "slow"
SLOW = "slow"
# A rate over windows lets clients go in bursts, one for each turn of the windows. With two of a second the bursts are
# short, and ten seconds have many of them.
WINDOWS = {"quota.window.num": "2", "quota.window.size.seconds": "1"}
TLS = {"ssl.keystore.type": "PEM", "ssl.enabled.protocols": "TLSv1.3"}
SASL = {"sasl.enabled.mechanisms": MECHANISM, "super.users": "User:ANONYMOUS", **WINDOWS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    server: Server
    ports: Mapping[str, int]  # by listener
    authority: str  # file

    def address(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"

    def tls(self) -> dict[str, str]:
        """Options of librdkafka."""
        return {"security.protocol": "SSL", "ssl.ca.location": self.authority}

    def login(self) -> dict[str, str]:
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": MECHANISM,
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        }

    def cipher(self) -> str:
        """What a client of TLS 1.3 that prefers nothing gets."""
        context = ssl.create_default_context(cafile=self.authority)
        with (
            socket.create_connection(("127.0.0.1", self.ports["SSL"]), timeout=60) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
        ):
            found = secured.cipher()
            assert found is not None
            return f"{secured.version()} {found[0]}"


@contextmanager
def certificate() -> Iterator[tuple[Path, Path]]:
    """A file with key and certificate of 127.0.0.1, and the certificate alone: it is its own authority."""
    with tempfile.TemporaryDirectory() as folder:
        key, signed, both = (Path(folder) / name for name in ("key.pem", "certificate.pem", "both.pem"))
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=bench"]
        command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(signed)]
        subprocess.run(command, check=True, capture_output=True)
        both.write_text(key.read_text() + signed.read_text())
        yield both, signed


@contextmanager
def ixion() -> Iterator[Secured]:
    ports = {name: free_port() for name in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT")}
    with certificate() as (both, authority), tempfile.TemporaryDirectory() as data:
        settings = {
            **TLS,
            **SASL,
            "ssl.keystore.location": str(both),
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
            "inter.broker.listener.name": "PLAINTEXT",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        }
        command = [sys.executable, "-m", "ixion", "serve", "--data", data]
        command += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        started = time.time()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            server = Server(bootstrap=f"127.0.0.1:{ports['PLAINTEXT']}", pid=process.pid, started=started)
            while not answers("127.0.0.1", ports["PLAINTEXT"]):
                if process.poll() is not None:
                    raise RuntimeError(f"the broker ended with {process.returncode}")
                time.sleep(0.05)
            yield prepared(Secured(server=server, ports=ports, authority=str(authority)))
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def apache_kafka() -> Iterator[Secured]:
    ports = {name: free_port() for name in ("SSL", "SASL_PLAINTEXT")}
    with certificate() as (both, authority), tempfile.TemporaryDirectory() as data:
        settings = {
            **TLS,
            **SASL,
            "ssl.keystore.location": str(both),
            "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        }
        kafka = RealKafka("3.9.1", Path(data), heap="1g", quick=False, listeners=ports, properties=settings)
        started = time.time()
        with kafka:
            server = Server(bootstrap=kafka.bootstrap, pid=kafka.pid, started=started)
            both_ports = {"PLAINTEXT": kafka.port, **ports}
            yield prepared(Secured(server=server, ports=both_ports, authority=str(authority)))


def prepared(secured: Secured) -> Secured:
    """With the user, its rules and the quotas."""
    rules = [rule(f"x{number}", bool(number % 2), f"User:u{number}") for number in range(RULES - 1)]
    quotas = {"producer_byte_rate": float(QUOTA), "consumer_byte_rate": float(QUOTA)}
    with Admin(secured.server.bootstrap) as admin:
        admin.alter_user_scram_credentials([ScramUpsertion(USER, PASSWORD, MECHANISM, iterations=ITERATIONS)]).check()
        admin.create_acls([*rules, rule("rules", False, f"User:{USER}")]).check()
        admin.alter_client_quotas({(("client-id", SLOW),): quotas}).check()
    return secured


def rule(topic: str, prefixed: bool, principal: str) -> Binding:
    pattern = PatternKind.PREFIXED if prefixed else PatternKind.LITERAL
    entry = Entry(principal, "*", Operation.ALL, Permission.ALLOW)
    return Binding(ResourcePattern(ResourceKind.TOPIC, topic, pattern), entry)
