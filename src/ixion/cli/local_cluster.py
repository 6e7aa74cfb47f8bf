"""A cluster on this machine: brokers and the tree that they share, each a process, kept track of in one directory.

    DIR/cluster.json      ports, process ids, settings; written before and after every step
    DIR/tree/             the metadata tree, unless the brokers share a ZooKeeper
    DIR/broker-1/         data of broker 1
    DIR/broker-1.log      what it prints

A process is known by its id together with the moment of its start: an id alone may belong by now to another process,
which must not be killed. Commands on one directory exclude each other by a lock.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from ixion.cli.command import UsageError
from ixion.model.errors import ErrorCode, KafkaError

STATE: Final = "cluster.json"
START_S: Final = 60.0  # how long a process may take to be ready
STOP_S: Final = 30.0  # how long it may take to stop; then it is killed
LOOK_S: Final = 0.02
READY: Final = b" ready on "


@dataclass
class Process:
    pid: int = 0
    started: str = ""  # together with the pid it names one process

    @property
    def running(self) -> bool:
        return self.pid > 0 and start_of(self.pid) == self.started

    def signal(self, number: signal.Signals) -> None:
        if self.running:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass  # it has just ended


@dataclass
class BrokerProcess:
    number: int
    port: int
    pages_port: int
    process: Process = field(default_factory=Process)

    @property
    def name(self) -> str:
        return f"broker-{self.number}"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@dataclass
class State:
    zookeeper: str  # where the brokers share their tree
    own_tree: bool
    settings: list[str]
    tree: Process
    brokers: list[BrokerProcess]

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers)


class LocalCluster:
    """To be used inside `locked`."""

    def __init__(self, directory: str) -> None:
        self.directory: Final = Path(directory)

    @contextmanager
    def locked(self) -> Iterator[None]:
        handle = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise failure(f"another command is at work on {self.directory}") from None
            yield
        finally:
            os.close(handle)

    def load(self) -> State | None:
        """None if no cluster was ever started here."""
        file = self.directory / STATE
        try:
            found = json.loads(file.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise failure(f"{file} cannot be read: {error}") from None
        try:
            brokers = [BrokerProcess(**{**each, "process": Process(**each["process"])}) for each in found["brokers"]]
            return State(**{**found, "tree": Process(**found["tree"]), "brokers": brokers})
        except (TypeError, KeyError):
            raise failure(f"{file} was not written by this version of ixion") from None

    def existing(self) -> State:
        state = self.load() if self.directory.is_dir() else None
        if state is None:
            raise UsageError(f"there is no cluster in {self.directory}; ixion cluster up starts one")
        return state

    def save(self, state: State) -> None:
        """Whole or not at all: a command may be killed at any moment."""
        text = json.dumps(asdict(state), indent=1)
        unfinished = self.directory / f"{STATE}.new"
        try:
            unfinished.write_text(text + "\n")
            unfinished.replace(self.directory / STATE)
        except OSError as error:
            raise failure(f"{self.directory / STATE} cannot be written: {error.strerror}") from None

    def start(self, name: str, process: Process, words: Sequence[str], state: State) -> None:
        """Begin a process; `process` is what is known of it from now on. One that cannot be noted is ended again."""
        try:
            with (self.directory / f"{name}.log").open("ab") as log:
                begun = subprocess.Popen(  # noqa: S603 (our own program)
                    [sys.executable, "-m", "ixion", *words],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C in this terminal is not for it
                )
        except OSError as error:
            raise failure(f"{name} cannot be started: {error.strerror}") from None
        process.pid = begun.pid
        process.started = start_of(begun.pid) or ""
        try:
            self.save(state)
        except KafkaError:
            begun.kill()
            begun.wait()
            raise

    def log_size(self, name: str) -> int:
        try:
            return (self.directory / f"{name}.log").stat().st_size
        except FileNotFoundError:
            return 0

    def await_ready(self, name: str, process: Process, log_from: int) -> str:
        """The line that says it. KafkaError if the process ended instead, or takes too long."""
        file = self.directory / f"{name}.log"
        deadline = time.monotonic() + START_S
        while True:
            alive = process.running  # asked before the log is read: the last words of one that ended are in it
            with file.open("rb") as log:
                log.seek(log_from)
                lines = log.read().splitlines(keepends=True)
            for line in lines:
                if READY in line and line.endswith(b"\n"):
                    return line.decode(errors="replace").strip()
            if not alive:
                last = lines[-1].decode(errors="replace").strip() if lines else "it printed nothing"
                raise failure(f"{name} did not start: {last} ({file} has the rest)")
            if time.monotonic() > deadline:
                raise failure(f"{name} is not ready after {START_S:.0f} s; see {file}")
            time.sleep(LOOK_S)

    def stop(self, processes: Sequence[tuple[str, Process]]) -> list[str]:
        """Stop them side by side; the names of those that had to be killed."""
        for _, process in processes:
            process.signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_S
        while time.monotonic() < deadline and any(process.running for _, process in processes):
            time.sleep(LOOK_S)
        killed = [name for name, process in processes if process.running]
        for name, process in processes:
            if name in killed:
                kill(process)
        return killed


def kill(process: Process) -> None:
    """Returns when it is gone."""
    process.signal(signal.SIGKILL)
    while process.running:
        time.sleep(LOOK_S)


def start_of(pid: int) -> str | None:
    """When a process was started, as the system writes it; None if there is no such process, or it has ended and its
    parent has not collected it yet."""
    if os.path.isdir("/proc/self"):
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        return None if fields[0] in (b"Z", b"X") else fields[19].decode()
    shown = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, check=False)  # noqa: S603, S607
    words = shown.stdout.decode(errors="replace").split()
    return None if not words or words[0].startswith("Z") else " ".join(words[1:])


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def failure(text: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)


def plan(brokers: int, port: int, zookeeper: str | None, settings: list[str]) -> State:
    """A cluster that was not there before."""
    tree_port, *pages = free_ports(brokers + 1)
    return State(
        zookeeper=zookeeper or f"127.0.0.1:{tree_port}",
        own_tree=zookeeper is None,
        settings=settings,
        tree=Process(),
        brokers=[BrokerProcess(number, port + number - 1, pages[number - 1]) for number in range(1, brokers + 1)],
    )


def broker_words(directory: Path, state: State, broker: BrokerProcess) -> list[str]:
    """The command line of a broker. What the user set comes last, and wins."""
    replicas = min(3, len(state.brokers))
    defaults: dict[str, Any] = {
        "broker.id": broker.number,
        "zookeeper.connect": state.zookeeper,
        "zookeeper.session.timeout.ms": 6_000,
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": max(1, replicas - 1),
        "min.insync.replicas": max(1, replicas - 1),
    }
    words = ["serve", "--port", str(broker.port), "--data", str(directory / broker.name)]
    words += ["--metrics-port", str(broker.pages_port), "--log-level", "info"]
    for name, value in defaults.items():
        words += ["--set", f"{name}={value}"]
    for setting in state.settings:
        words += ["--set", setting]
    return words


def tree_words(directory: Path, state: State) -> list[str]:
    port = state.zookeeper.rpartition(":")[2]
    return ["cluster", "tree", "--data", str(directory / "tree"), "--port", port]
