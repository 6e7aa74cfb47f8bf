"""Network namespaces for the brokers of a soak: each has an address of its own, and any path between two can be cut.

    with Network(["broker-1", "broker-2"]) as network:
        process = subprocess.Popen([*network.inside("broker-1"), ...])
        network.cut("broker-1", network.address("broker-2"))     # packets from 1 to 2 vanish; those from 2 to 1 arrive
        network.heal()

A bridge joins the namespaces and this machine, which has two addresses on it: `here` for clients, `store` for
ZooKeeper, so that a broker can be cut off from one of them alone. A path is cut by a wrong neighbour entry: packets go
to a hardware address that no machine has, and neither end gets an error. It needs root.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

NOBODY: Final = "02:00:00:00:00:99"
FIRST: Final = 11  # of the namespaces' addresses


def available() -> bool:
    """Whether this machine lets us make namespaces."""
    name = f"ixprobe{os.getpid()}"
    try:
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True)
    except OSError:
        return False
    if made.returncode != 0:
        return False
    return subprocess.run(["ip", "netns", "del", name], capture_output=True).returncode == 0


class Network:
    def __init__(self, names: list[str]) -> None:
        self._mark = os.getpid() % 250  # several soaks of one machine stay apart
        self._bridge = f"ix{os.getpid()}"
        self._names = names
        self._cuts: list[tuple[str, str]] = []
        self.here = f"10.77.{self._mark}.1"
        self.store = f"10.77.{self._mark}.2"

    def address(self, name: str) -> str:
        return f"10.77.{self._mark}.{FIRST + self._names.index(name)}"

    def inside(self, name: str) -> list[str]:
        """The words before a command that is to run there; its process keeps its id."""
        return ["ip", "netns", "exec", self._space(name)]

    def __enter__(self) -> Self:
        try:
            ip("link", "add", self._bridge, "type", "bridge")
            for address in (self.here, self.store):
                ip("addr", "add", f"{address}/24", "dev", self._bridge)
            ip("link", "set", self._bridge, "up")
            for name in self._names:
                space, end = self._space(name), f"{self._bridge}v{self._names.index(name)}"
                ip("netns", "add", space)
                ip("link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", space)
                ip("link", "set", end, "master", self._bridge, "up")
                ip("-n", space, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
                ip("-n", space, "link", "set", "eth0", "up")
                ip("-n", space, "link", "set", "lo", "up")
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.remove()

    def cut(self, name: str, address: str) -> None:
        """Packets from there to this address vanish."""
        self._cuts.append((name, address))
        neighbour = (address, "lladdr", NOBODY, "dev", "eth0", "nud", "permanent")
        ip("-n", self._space(name), "neigh", "replace", *neighbour)

    def heal(self) -> None:
        """Every path is whole again."""
        while self._cuts:
            name, address = self._cuts.pop()
            with suppress(subprocess.CalledProcessError):
                ip("-n", self._space(name), "neigh", "del", address, "dev", "eth0")

    def remove(self) -> None:
        for name in self._names:
            with suppress(subprocess.CalledProcessError):
                ip("netns", "del", self._space(name))
        with suppress(subprocess.CalledProcessError):
            ip("link", "del", self._bridge)

    def _space(self, name: str) -> str:
        return f"{self._bridge}-{name}"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
