"""`ixion cluster up|status|kill|down`, with real processes."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import OURS_ALONE, decode_features, encode_features
from ixion.broker.metadata.embedded import FILE_NAME, EmbeddedStore
from ixion.cli.cluster import local as local_cluster
from ixion.cli.cluster import process as local_process
from ixion.cli.cluster.local import LocalCluster, State, broker_words, free_ports, is_free, make_tree, plan, renew_ports
from ixion.cli.cluster.process import Process, start_of
from ixion.cli.command import UsageError
from ixion.config.sources import load
from ixion.language.model.errors import KafkaError


class Laptop:
    """A directory with a cluster, and the command line beside it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.data = str(directory / "cluster")

    def __call__(self, *words: str, code: int = 0, stdin: str = "") -> str:
        environment = {**os.environ, **({} if words[0] == "cluster" else {"IXION_BOOTSTRAP": self.bootstrap})}
        ran = subprocess.run(
            [sys.executable, "-m", "ixion", *words],
            input=stdin,
            text=True,
            capture_output=True,
            cwd=self.directory,
            env=environment,
            timeout=150,
        )
        assert ran.returncode == code, ran.stderr
        return ran.stdout if code == 0 else ran.stderr

    def cluster(self, command: str, *words: str, code: int = 0) -> str:
        return self("cluster", command, *words, "--data", self.data, code=code)

    def status(self) -> Any:
        return json.loads(self.cluster("status", "--json"))

    @property
    def bootstrap(self) -> str:
        return LocalCluster(self.data).existing().bootstrap


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Laptop]:
    made = Laptop(tmp_path)
    yield made
    if (tmp_path / "cluster" / "cluster.json").exists():
        made.cluster("down")


def ports_in_a_row(count: int) -> int:
    """The first of them. They are below the ports that the system gives to connections of other tests."""
    firsts = range(20_000 + os.getpid() % 1_000 * 10, 32_000, count)
    return next(first for first in firsts if all(is_free(first + number) for number in range(count)))


def test_a_cluster_from_up_to_down(laptop: Laptop) -> None:
    port = ports_in_a_row(3)
    laptop.cluster("up", "--brokers", "3", "--port", str(port))
    laptop("topic", "create", "orders", "--partitions", "3")
    laptop("produce", "orders", stdin="a\nb\nc\n")

    laptop.cluster("kill", "2")
    assert [each["state"] == "stopped" for each in laptop.status()["brokers"]] == [False, True, False]
    assert "does not run" in laptop.cluster("kill", "2", code=2)
    laptop("produce", "orders", stdin="d\ne\n")  # the others took over
    assert sorted(laptop("consume", "orders", "--exit-at-end").split()) == ["a", "b", "c", "d", "e"]

    laptop.cluster("up")  # what does not run
    until(lambda: all(each["state"] == "ready" for each in laptop.status()["brokers"]))

    state = LocalCluster(laptop.data).existing()
    os.kill(state.tree.pid, signal.SIGKILL)
    until(lambda: laptop.status()["tree"] == "stopped")
    laptop.cluster("up")  # the brokers register again
    until(lambda: all(each["state"] == "ready" for each in laptop.status()["brokers"]))
    laptop("produce", "orders", stdin="f\n")

    laptop.cluster("down")
    status = laptop.status()
    assert status["tree"] == "stopped"
    assert [each["pid"] for each in status["brokers"]] == [None] * 3


def test_a_broker_that_cannot_start_is_named_with_its_reason(laptop: Laptop) -> None:
    (port,) = free_ports(1)
    said = laptop.cluster("up", "--brokers", "1", "--port", str(port), "--set", "num.partitions=0", code=1)
    assert "broker-1 did not start" in said
    assert "num.partitions" in said
    laptop.cluster("up", "--set", "num.partitions=2")  # mended: the settings of brokers that do not run may change


def test_too_few_free_ports_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_cluster, "is_free", lambda port: port == 20_001)
    assert free_ports(1) == [20_001]
    with pytest.raises(UsageError, match="2 free ports are needed; from 20,000 to 32,000 there are 1"):
        free_ports(2)


def test_mistakes_are_one_line(laptop: Laptop) -> None:
    for command in ("status", "down"):
        assert "there is no cluster in" in laptop.cluster(command, code=2)
    assert "must be at most 32" in laptop.cluster("up", "--brokers", "99", code=2)
    cluster = LocalCluster(laptop.data)
    cluster.directory.mkdir()
    (cluster.directory / "cluster.json").write_text("{")
    assert "cannot be read" in laptop.cluster("up", code=1)
    (cluster.directory / "cluster.json").write_text('{"brokers": []}')
    assert "not written by this version" in laptop.cluster("up", code=1)
    (cluster.directory / "cluster.json").unlink()


def known(tmp_path: Path) -> tuple[LocalCluster, State]:
    cluster = LocalCluster(str(tmp_path))
    return cluster, plan(cluster.home, 2, 19_092, None, [])


def test_a_process_id_that_was_given_away_is_left_alone() -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        began = start_of(stranger.pid)
        assert began is not None
        assert Process(stranger.pid, began).running
        other = Process(stranger.pid, began + "1")
        assert not other.running
        other.signal(signal.SIGKILL)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.communicate()
    assert not Process(stranger.pid, began).running


def test_what_is_known_comes_back_as_it_was(tmp_path: Path) -> None:
    cluster, state = known(tmp_path)
    state.brokers[1].process = Process(7, "8")
    cluster.save(state)
    assert cluster.load() == state


def test_a_process_that_cannot_be_noted_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, state = known(tmp_path)

    def full(_path: Path, _target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    words = ["cluster", "tree", "--port", "0", "--data", str(tmp_path / "tree")]
    with pytest.raises(KafkaError, match=r"cluster.json cannot be written: No space"):
        cluster.start("tree", state.tree, words, state)
    assert state.tree.pid
    assert not state.tree.running


def test_a_process_that_cannot_be_begun_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, state = known(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    with pytest.raises(KafkaError, match="tree cannot be started: No such file"):
        cluster.start("tree", state.tree, [], state)


def test_two_commands_exclude_each_other(tmp_path: Path) -> None:
    cluster, _ = known(tmp_path)
    with cluster.locked(), pytest.raises(KafkaError, match="another command"), LocalCluster(str(tmp_path)).locked():
        pass


def test_a_cluster_grows_and_does_not_shrink_or_move(tmp_path: Path) -> None:
    from ixion.cli.cluster.up import adapt

    _, state = known(tmp_path)
    adapt(state, 3, None, None, [])
    assert [broker.port for broker in state.brokers] == [19_092, 19_093, 19_094]
    with pytest.raises(UsageError, match="has 3 brokers"):
        adapt(state, 2, None, None, [])
    with pytest.raises(UsageError, match="another port"):
        adapt(state, None, 9_092, None, [])
    with pytest.raises(UsageError, match="another ZooKeeper"):
        adapt(state, None, None, "zk:2181", [])


def test_a_process_of_an_earlier_life_of_the_machine_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its id and its start, counted from the start of the machine, may be those of a stranger by now."""
    own = Process(os.getpid(), start_of(os.getpid()) or "")
    assert own.running
    monkeypatch.setattr(local_process, "life_of_machine", lambda: "another")
    assert not own.running


def test_a_process_of_another_user_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(signal, "pidfd_send_signal", refused, raising=False)
    monkeypatch.setattr(os, "kill", refused)
    own = Process(os.getpid(), start_of(os.getpid()) or "")
    with pytest.raises(KafkaError, match=f"process {os.getpid()} belongs to another user"):
        own.signal(signal.SIGTERM)


def test_a_copy_of_the_directory_has_no_processes(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    cluster, state = known(tmp_path / "one")
    own = Process(os.getpid(), start_of(os.getpid()) or "")
    state.tree = state.brokers[0].process = own
    cluster.save(state)
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    copied = LocalCluster(str(tmp_path / "copy")).existing()
    assert not copied.tree.running
    assert not copied.brokers_run
    (tmp_path / "one").rename(tmp_path / "moved")
    moved = LocalCluster(str(tmp_path / "moved")).existing()
    assert moved.tree == moved.brokers[0].process == own


def test_ports_that_another_program_took_are_replaced(tmp_path: Path) -> None:
    _, state = known(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        taken = stranger.getsockname()[1]
        state.zookeeper = f"127.0.0.1:{taken}"
        state.brokers[0].pages_port = taken
        assert not is_free(taken)
        running = state.brokers[1].process = Process(os.getpid(), start_of(os.getpid()) or "")
        pages = state.brokers[1].pages_port
        renew_ports(state)
        assert state.zookeeper == f"127.0.0.1:{taken}", "a broker that runs knows it"
        assert state.brokers[0].pages_port not in (taken, 19_092, 19_093)
        assert (state.brokers[1].process, state.brokers[1].pages_port) == (running, pages)
        state.brokers[1].process = Process()
        renew_ports(state)
        assert state.zookeeper != f"127.0.0.1:{taken}"
    assert f"zookeeper.connect={state.zookeeper}" in broker_words(tmp_path, state, state.brokers[0])


def test_a_ctrl_c_between_the_start_of_a_process_and_its_note_loses_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, state = known(tmp_path)
    save = cluster.save

    def interrupted(state: State) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        save(state)

    monkeypatch.setattr(cluster, "save", interrupted)
    words = ["cluster", "tree", "--port", "0", "--data", str(tmp_path / "tree")]
    with pytest.raises(KeyboardInterrupt):
        cluster.start("tree", state.tree, words, state)
    noted = cluster.existing().tree
    assert noted.pid == state.tree.pid
    local_process.kill(noted)


def test_a_directory_that_cannot_be_used_is_one_line(laptop: Laptop) -> None:
    (laptop.directory / "cluster").write_text("a file")
    assert "cannot be used: File exists" in laptop.cluster("up", code=1)


def test_a_new_cluster_begins_with_the_consumer_protocol_and_an_old_one_keeps_its_features(tmp_path: Path) -> None:
    make_tree(tmp_path)
    file = str(tmp_path / "tree" / FILE_NAME)
    store = EmbeddedStore(file)
    session = store.open_session(10_000)
    assert decode_features(session.get(paths.FEATURES).data) == OURS_ALONE
    session.set(paths.FEATURES, encode_features({}))
    session.close()
    store.close()
    make_tree(tmp_path)
    store = EmbeddedStore(file)
    assert decode_features(store.open_session(10_000).get(paths.FEATURES).data) == {}
    store.close()


def test_secrets_are_in_files_of_this_user_alone(tmp_path: Path) -> None:
    """Every user of the machine can read command lines."""
    jaas = 'listener.name.sasl_plaintext.plain.sasl.jaas.config=x required user_root="hunter2\\\\";'
    cluster = LocalCluster(str(tmp_path))
    state = plan(str(tmp_path), 1, 0, None, ["num.partitions=3", jaas, "ssl.key.password=hunter2"])
    words = broker_words(tmp_path, state, state.brokers[0])
    assert "hunter2" not in " ".join(words)
    assert "num.partitions=3" in words
    file = Path(words[words.index("--config") + 1])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    loaded = load(file=file).given
    assert loaded == dict(each.split("=", 1) for each in (jaas, "ssl.key.password=hunter2"))
    cluster.save(state)
    assert stat.S_IMODE((tmp_path / "cluster.json").stat().st_mode) == 0o600


def test_secrets_of_running_brokers_are_seen_by_nobody_else(laptop: Laptop) -> None:
    """They are in no file that others can read, and on no command line of what was started."""
    (port,) = free_ports(1)
    secrets = (
        'listener.name.x.plain.sasl.jaas.config=x required user_root="hunter2";',
        "ssl.keystore.password=hunter2",
        "ssl.key.password=hunter2",
        "delegation.token.secret.key=hunter2",
    )
    words = [word for each in secrets for word in ("--set", each)]
    laptop.directory.chmod(0o755)
    for started in ("for the first time", "again"):
        laptop.cluster("up", "--brokers", "1", "--port", str(port), *words)
        laptop("topic", "create", f"t-{started.split()[0]}")
        state = LocalCluster(laptop.data).existing()
        for process in (state.tree, *(each.process for each in state.brokers)):
            line = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            assert b"ixion" in line
            assert b"hunter2" not in line
        laptop.cluster("down")
        holding = [each for each in Path(laptop.data).rglob("*") if each.is_file() and b"hunter2" in each.read_bytes()]
        assert {each.name for each in holding} == {"cluster.json", "broker-1.secrets"}
        assert [stat.S_IMODE(each.stat().st_mode) for each in holding] == [0o600, 0o600]
        for each in holding:
            each.chmod(0o644)  # as an older version may have left it
