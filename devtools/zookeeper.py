"""A real ZooKeeper on the loopback address: one server, or an ensemble of three.

    with RealZooKeeper(tmp_path) as zookeeper:
        session = await open_session(f"{zookeeper.connect}/kafka", 6_000)

Inside the block it answers; after it the processes are gone, whatever happened. `kill`, `pause` and `launch` take the
number of a server.

With `users` (passwords by name) they can log in by SASL, mechanism DIGEST-MD5. With `tls` (a PEM file with its key and
certificate, one with the authorities of clients) it has a port for TLS, too.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final

from devtools import jars
from devtools.jvm import QUICK, java_command
from devtools.kafka import free_port

VERSION: Final = "3.9.4"
START_TIMEOUT_S: Final = 60.0


class RealZooKeeper:
    def __init__(
        self,
        directory: Path,
        *,
        version: str = VERSION,
        servers: int = 1,
        tick_ms: int = 500,
        host: str = "127.0.0.1",
        tls: tuple[Path, Path] | None = None,
        users: Mapping[str, str] | None = None,
    ) -> None:
        """A session lasts 2 to 20 ticks, whatever its client asks for. HOST is the address that clients reach."""
        self.version = version
        self.directory = directory
        self.ports = [free_port() for _ in range(servers)]
        self.host = host
        self._tls = tls
        self._users = users
        self._secure_ports = [] if tls is None else [free_port() for _ in range(servers)]
        self._tick_ms = tick_ms
        self._quorum = [(free_port(), free_port()) for _ in range(servers)]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def connect(self) -> str:
        return ",".join(f"{self.host}:{port}" for port in self.ports)

    @property
    def secure_connect(self) -> str:
        return ",".join(f"{self.host}:{port}" for port in self._secure_ports)

    def __enter__(self) -> RealZooKeeper:
        try:
            for number in range(len(self.ports)):
                self.launch(number)
            self.wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def launch(self, number: int = 0) -> None:
        """Start a server, and do not wait for it to answer."""
        home = self.directory / f"zookeeper-{number}"
        home.mkdir(parents=True, exist_ok=True)
        lines = {
            "tickTime": self._tick_ms,
            "dataDir": home,
            "clientPort": self.ports[number],
            "clientPortAddress": self.host,
            "admin.enableServer": "false",
            "maxClientCnxns": 0,
            "4lw.commands.whitelist": "ruok,srvr,cons",
        }
        if len(self.ports) > 1:
            lines |= {"initLimit": 20, "syncLimit": 10}
            for other, (peer, election) in enumerate(self._quorum):
                lines[f"server.{other + 1}"] = f"127.0.0.1:{peer}:{election}"
            (home / "myid").write_text(f"{number + 1}\n")
        options = ["-Xmx128m", *QUICK]
        if self._tls is not None:
            own, authorities = self._tls
            lines |= {
                "secureClientPort": self._secure_ports[number],
                "secureClientPortAddress": self.host,
                "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
                "ssl.keyStore.location": own,
                "ssl.keyStore.type": "PEM",
                "ssl.trustStore.location": authorities,
                "ssl.trustStore.type": "PEM",
                "ssl.hostnameVerification": "false",  # of clients, whose addresses change
                "ssl.enabledProtocols": "TLSv1.2,TLSv1.3",
            }
        if self._users is not None:
            lines["authProvider.1"] = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
            known = " ".join(f'user_{name}="{password}"' for name, password in self._users.items())
            jaas = home / "jaas.conf"
            jaas.write_text(f"Server {{\n org.apache.zookeeper.server.auth.DigestLoginModule required {known};\n}};\n")
            options.append(f"-Djava.security.auth.login.config={jaas}")
        settings = home / "zoo.cfg"
        settings.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        classpath = jars.classpath(f"zookeeper-{self.version}")
        command = java_command(main, str(settings), classpath=classpath, options=options)
        with (home / "server.out").open("ab") as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self._processes[number] = process

    def wait(self) -> None:
        """Return when every server that was launched serves requests."""
        end = time.monotonic() + START_TIMEOUT_S
        for number, process in self._processes.items():
            while not _serves(self.host, self.ports[number]):
                if process.poll() is not None or time.monotonic() > end:
                    output = (self.directory / f"zookeeper-{number}" / "server.out").read_text(errors="replace")
                    raise RuntimeError(f"ZooKeeper {self.version} did not start:\n{output[-3000:]}")
                time.sleep(0.05)

    def heard(self, session_id: int, number: int = 0) -> int:
        """How many packets of this session have come to a server; 0 if it is not connected there."""
        found = re.search(rf"recved=(\d+),sent=\d+,sid={session_id:#x},", ask(self.host, self.ports[number], b"cons"))
        return int(found[1]) if found else 0

    def kill(self, number: int = 0) -> None:
        process = self._processes.pop(number)
        process.kill()
        process.wait()

    def pause(self, number: int = 0) -> None:
        os.kill(self._processes[number].pid, signal.SIGSTOP)

    def resume(self, number: int = 0) -> None:
        os.kill(self._processes[number].pid, signal.SIGCONT)

    def stop(self) -> None:
        for number in list(self._processes):
            self.kill(number)


def _serves(host: str, port: int) -> bool:
    """Asks `srvr`: a server that has no quorum says that it is not serving requests."""
    try:
        return "Zxid" in ask(host, port, b"srvr")
    except OSError:
        return False


def ask(host: str, port: int, word: bytes) -> str:
    """The answer to one of ZooKeeper's words of four letters."""
    with socket.create_connection((host, port), timeout=2) as connection:
        connection.sendall(word)
        answer = b""
        while piece := connection.recv(4096):
            answer += piece
    return answer.decode(errors="replace")
