"""A cluster on this machine: brokers and their shared tree, each a process, recorded in one directory.

    DIR/cluster.json      ports, process ids, settings; written before and after every step
    DIR/tree/             the metadata tree, unless the brokers share a ZooKeeper
    DIR/broker-1/         data of broker 1
    DIR/broker-1.log      its output

A process is identified by its id and its start time: the id alone may belong to another process by now, which must not
be killed. A copy of the directory has no processes: those in its file belong to the original. A lock lets one command
at a time work on a directory.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ixion.cli.cluster.process import LOOK_S, Process, failure, kill, start_of
from ixion.cli.command import UsageError
from ixion.cli.interrupt import held_interrupt
from ixion.config.broker import is_secret

STATE: Final = "cluster.json"
START_S: Final = 60.0  # how long a process may take to be ready
STOP_S: Final = 30.0  # how long it may take to stop; then it is killed
READY: Final = b" ready on "
SESSION_MS: Final = 10_000
BELOW_THOSE_OF_CLIENTS: Final = range(20_000, 32_000)


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
    home: str  # identifies the directory: a copy has another one
    zookeeper: str  # the address of the shared tree
    own_tree: bool
    settings: list[str]
    tree: Process
    brokers: list[BrokerProcess]

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers)

    @property
    def brokers_run(self) -> bool:
        return any(broker.process.running for broker in self.brokers)


class LocalCluster:
    """Use it inside `locked`."""

    def __init__(self, directory: str) -> None:
        self.directory: Final = Path(directory)

    @property
    def home(self) -> str:
        """Identifies the directory; it survives a rename."""
        found = self.directory.stat()
        return f"{found.st_dev}:{found.st_ino}"

    def make(self) -> None:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise failure(f"{self.directory} cannot be used: {error.strerror}") from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        try:
            handle = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise failure(f"{self.directory} cannot be used: {error.strerror}") from None
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise failure(f"another command is working on {self.directory}") from None
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
            state = State(**{**found, "tree": Process(**found["tree"]), "brokers": brokers})
        except (TypeError, KeyError):
            raise failure(f"{file} was not written by this version of ixion") from None
        if state.home != self.home:
            state.home, state.tree = self.home, Process()
            for broker in state.brokers:
                broker.process = Process()
        return state

    def existing(self) -> State:
        state = self.load() if self.directory.is_dir() else None
        if state is None:
            raise UsageError(f"there is no cluster in {self.directory}; ixion cluster up starts one")
        return state

    def save(self, state: State) -> None:
        """Write the file whole or not at all: the command may be killed at any moment."""
        text = json.dumps(asdict(state), indent=1)
        unfinished = self.directory / f"{STATE}.new"
        try:
            with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
                opened.write(text + "\n")  # the settings may contain secrets
            unfinished.replace(self.directory / STATE)
        except OSError as error:
            raise failure(f"{self.directory / STATE} cannot be written: {error.strerror}") from None

    def start(self, name: str, process: Process, words: Sequence[str], state: State) -> None:
        """Start a process and record it in `process`. If that cannot be saved, the process is ended again."""
        with held_interrupt():  # its start and its record belong together
            try:
                with (self.directory / f"{name}.log").open("ab") as log:
                    begun = subprocess.Popen(  # noqa: S603 (our own program)
                        [sys.executable, "-m", "ixion", *words],
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,  # so that Ctrl-C in this terminal does not reach it
                    )
            except OSError as error:
                raise failure(f"{name} cannot be started: {error.strerror}") from None
            process.pid = begun.pid
            process.started = start_of(begun.pid) or ""
            try:
                self.save(state)
            except BaseException:
                begun.kill()
                begun.wait()
                raise
            begun.returncode = 0  # it outlives this command: no warning about a running child

    def log_size(self, name: str) -> int:
        try:
            return (self.directory / f"{name}.log").stat().st_size
        except FileNotFoundError:
            return 0

    def await_ready(self, name: str, process: Process, log_from: int) -> str:
        """The line that the ready process prints. KafkaError if it ended, or takes too long."""
        file = self.directory / f"{name}.log"
        deadline = time.monotonic() + START_S
        while True:
            alive = process.running  # checked before the log is read, so that the log is complete if it ended
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
        """Stop all at the same time. Returns the names of those that had to be killed."""
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


def free_ports(count: int, but: Collection[int] = ()) -> list[int]:
    """Ports that are free now, and not in `but`. Linux gives none of these to a client that connects somewhere, so they
    stay free unless another server takes them."""
    tried = random.sample(BELOW_THOSE_OF_CLIENTS, len(BELOW_THOSE_OF_CLIENTS))
    found = list(islice((port for port in tried if port not in but and is_free(port)), count))
    if len(found) < count:
        raise UsageError(f"{count} free ports are needed; from 20,000 to 32,000 there are {len(found)}")
    return found


def is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def plan(home: str, brokers: int, port: int, zookeeper: str | None, settings: list[str]) -> State:
    """The state of a new cluster."""
    tree_port, *pages = free_ports(brokers + 1, range(port, port + brokers))
    return State(
        home=home,
        zookeeper=zookeeper or f"127.0.0.1:{tree_port}",
        own_tree=zookeeper is None,
        settings=settings,
        tree=Process(),
        brokers=[BrokerProcess(number, port + number - 1, pages[number - 1]) for number in range(1, brokers + 1)],
    )


def broker_words(directory: Path, state: State, broker: BrokerProcess) -> list[str]:
    """The command line of a broker. The user's settings come last, and win."""
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
    secrets = [setting for setting in state.settings if is_secret(setting.partition("=")[0].strip())]
    if secrets:  # every user of the machine can read command lines
        words += ["--config", str(write_secrets(directory / f"{broker.name}.secrets", secrets))]
    for setting in state.settings:
        if setting not in secrets:
            words += ["--set", setting]
    return words


def write_secrets(file: Path, settings: Sequence[str]) -> Path:
    """A file of settings that only this user can read."""
    lines = [setting.replace("\\", "\\\\").replace("\n", "\\n") for setting in settings]
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        os.fchmod(opened.fileno(), 0o600)  # an older file may be readable
        opened.write("\n".join(lines) + "\n")
    return file


def renew_ports(state: State) -> None:
    """Choose other ports for stopped processes if another program has taken theirs. The ports of brokers stay, because
    clients know them, and so does that of the tree if brokers run."""
    own = [broker.port for broker in state.brokers]
    stopped = state.own_tree and not state.tree.running and not state.brokers_run
    if stopped and not is_free(int(state.zookeeper.rpartition(":")[2])):
        state.zookeeper = f"127.0.0.1:{free_ports(1, own)[0]}"
    for broker in state.brokers:
        if not broker.process.running and not is_free(broker.pages_port):
            (broker.pages_port,) = free_ports(1, own)


def tree_words(directory: Path, state: State) -> list[str]:
    port = state.zookeeper.rpartition(":")[2]
    return ["cluster", "tree", "--data", str(directory / "tree"), "--port", port]


def make_tree(directory: Path) -> None:
    """Create the tree of a new cluster, with the features of a cluster that has ixion's brokers only."""
    from ixion.broker.metadata import paths
    from ixion.broker.metadata.cluster_node import OURS_ALONE, encode_features
    from ixion.broker.metadata.embedded import FILE_NAME, EmbeddedStore

    file = directory / "tree" / FILE_NAME
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    store = EmbeddedStore(str(file))
    try:
        session = store.open_session(SESSION_MS)
        session.create(paths.FEATURES, encode_features(OURS_ALONE))
        session.close()
    finally:
        store.close()
