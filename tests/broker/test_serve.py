"""`ixion serve`: the ready line, exit codes, one line for what went wrong and no trace of it, stopping, coming back."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from ixion import __version__
from tests.broker.served import READY, Served, environment, serve_and_wait


def produce(bootstrap: str, count: int, topic: str = "t") -> None:
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    for number in range(count):
        producer.produce(topic, str(number).encode(), on_delivery=delivered)
    assert producer.flush(30) == 0
    assert failed == []


def values(bootstrap: str, count: int, topic: str = "t") -> list[bytes]:
    """The first `count` records of partition 0."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    while len(found) < count:
        message = consumer.poll(30)
        assert message is not None, f"only {len(found)} of {count} came"
        if message.error() is None:
            found.append(bytes(message.value() or b""))
    consumer.close()
    return found


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_line_says_that_it_is_ready_another_what_to_try_and_sigterm_stops_it(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        found = READY.fullmatch(served.line)
        assert found is not None
        assert found[1] == __version__
        assert found[5] == "./ixion-data"
        produce(served.bootstrap, 3)
        assert values(served.bootstrap, 3) == [b"0", b"1", b"2"]
        assert served.process.stdout is not None
        step = served.process.stdout.readline()
        assert step == f"try: echo hello | ixion produce greetings -b {served.bootstrap}\n"
        assert served.stop() == (0, "", "")
    assert (tmp_path / "ixion-data" / ".kafka_cleanshutdown").exists()


def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        with Served(tmp_path, "--data", "kept") as served:
            produce(served.bootstrap, 5)
            served.stop(number)
    with Served(tmp_path, "--data", "kept") as served:
        assert values(served.bootstrap, 15) == [b"0", b"1", b"2", b"3", b"4"] * 3


def test_it_stops_under_load_and_loses_nothing(tmp_path: Path) -> None:
    acknowledged: list[bytes] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged.append(bytes(message.value() or b""))

    with Served(tmp_path) as served:
        producer = Producer({"bootstrap.servers": served.bootstrap, "acks": "all", "message.timeout.ms": 10_000})
        number = 0
        while len(acknowledged) < 2_000:
            producer.produce("t", b"%d" % number, on_delivery=delivered)
            number += 1
            producer.poll(0.01 if len(producer) > 10_000 else 0)  # its queue holds a hundred thousand
        served.process.terminate()
        for _ in range(1_000):  # what is under way when it stops
            producer.produce("t", b"%d" % number, on_delivery=delivered)
            number += 1
        producer.poll(0.2)
        assert served.process.wait(60) == 0
        producer.purge()
        producer.flush(10)
    with Served(tmp_path) as served:
        assert set(acknowledged) <= set(values(served.bootstrap, len(acknowledged)))


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        served.process.send_signal(signal.SIGSTOP)  # so that both are there when it goes on
        served.process.send_signal(signal.SIGTERM)
        served.process.send_signal(signal.SIGINT)
        code, _, err = served.stop(signal.SIGCONT)
    assert code in (128 + signal.SIGTERM, 128 + signal.SIGINT)
    assert "a second signal to stop" in err
    assert not (tmp_path / "ixion-data" / ".kafka_cleanshutdown").exists()


def run_patched(tmp_path: Path, patch: str) -> subprocess.Popen[str]:
    """`ixion serve` in a process that is changed first; it prints "now" where the test is to go on."""
    code = (
        "import asyncio\nimport ixion.cli.serve.run as serve\nfrom ixion.broker.startup.broker import Broker\n"
        f"async def hang(*_):\n    print('now', flush=True)\n    await asyncio.sleep(600)\n{patch}\n"
        "raise SystemExit(serve.main(['--port', '0', '--metrics-port', 'off', '--quiet']))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_signal_to_stop_while_it_starts(tmp_path: Path) -> None:
    with run_patched(tmp_path, "import ixion.broker.startup.broker as module\nmodule.run_steps = hang") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "now\n"
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


def test_stopping_has_a_bound(tmp_path: Path) -> None:
    with run_patched(
        tmp_path,
        "serve.STOP_SECONDS = 0\nserve.announce = lambda *_: __import__('os').kill("
        "__import__('os').getpid(), 15)\nBroker.stop = hang",
    ) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "not stopped after 0 s" in err


def test_when_every_disk_has_failed_it_stops_and_says_so(tmp_path: Path) -> None:
    with run_patched(tmp_path, "serve.announce = lambda broker, _quiet: broker.failed.set()") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.startswith("ixion serve: stopped, because every log directory")


def test_quiet_says_nothing(tmp_path: Path) -> None:
    served = Served(tmp_path, "--quiet", "--log-level", "info")
    assert served.process.stderr is not None
    assert any("ready" in line for line in served.process.stderr)
    code, out, _ = served.stop()
    assert (code, out) == (0, "")


def test_the_log_can_be_read_by_programs(tmp_path: Path) -> None:
    words = ("--log-format", "json", "--log-level", "info", "--set", "num.partitoins=3")
    with Served(tmp_path, *words) as served:
        _, _, err = served.stop()
    lines = [json.loads(line) for line in err.splitlines()]
    assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)
    assert any("num.partitions" in line["message"] and line["level"] == "warning" for line in lines)
    ready = next(line for line in lines if line["message"] == "ready")
    assert ready["addresses"] == served.bootstrap
    assert sum(line["logger"] == "ixion.broker.startup.steps" for line in lines) == 1


def test_a_secret_on_the_command_line_is_named_and_not_shown(tmp_path: Path) -> None:
    with Served(tmp_path, "--set", "delegation.token.secret.key=hunter2") as served:
        _, _, err = served.stop()
    assert "delegation.token.secret.key is on a command line" in err
    assert "hunter2" not in err


def test_settings_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("log.dirs=from-file\nauto.create.topics.enable=false\n")
    with Served(tmp_path, "--config", "server.properties") as served:
        assert served.line.endswith("data in ./from-file\n")


REFUSED = {
    "a wrong value": (("--set", "num.partitions=many"), "num.partitions is 'many'"),
    "no pair": (("--set", "num.partitions"), "name=value"),
    "no such file": (("--config", "missing.properties"), "missing.properties"),
    "another address": (
        ("--set", "listeners=PLAINTEXT://0.0.0.0:0", "--set", "advertised.listeners=PLAINTEXT://127.0.0.1:0"),
        "--allow-remote",
    ),
    "a listener with TLS": (
        ("--set", "listeners=SSL://127.0.0.1:0", "--set", "security.inter.broker.protocol=SSL"),
        "SSL",
    ),
    "a file for a directory": (("--port", "0", "--data", "file"), "is not a directory"),
    "an authorizer": (("--port", "0", "--set", "authorizer.class.name=kafka.Authorizer"), "authorizer.class.name"),
    "directories of two brokers": (("--port", "0", "--data", "one,two"), "belong to different brokers"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_start_that_fails_prints_one_line_and_changes_nothing(what: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    for number, name in enumerate(("one", "two")):
        (tmp_path / name).mkdir(0o700)
        (tmp_path / name / "meta.properties").write_text(f"version=0\nbroker.id={number}\ncluster.id=c\n")
    before = contents(tmp_path)
    words, said = REFUSED[what]
    ended = serve_and_wait(*words, cwd=tmp_path)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert said in ended.stderr
    assert ended.stderr.startswith("ixion serve: ")
    assert ended.stderr.count("\n") == 1
    assert contents(tmp_path) == before


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = serve_and_wait("--port", str(port), cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"127.0.0.1:{port} is in use" in ended.stderr
    assert "--port " in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_another_broker_uses(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        before = set(contents(tmp_path))
        ended = serve_and_wait("--port", "0", cwd=tmp_path)
        assert (ended.returncode, ended.stdout) == (1, "")
        assert "ixion-data" in ended.stderr
        assert ended.stderr.count("\n") == 1
        assert set(contents(tmp_path)) == before
        produce(served.bootstrap, 1)


def test_a_metrics_port_in_use_is_an_error_only_if_it_was_asked_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = serve_and_wait("--port", "0", "--metrics-port", str(port), cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"metrics cannot be served on 127.0.0.1:{port}: Address already in use; choose another" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_metrics_are_for_this_machine_unless_allow_remote_is_given(tmp_path: Path) -> None:
    ended = serve_and_wait("--port", "0", "--metrics-port", "0.0.0.0:0", cwd=tmp_path)
    assert ended.returncode == 1
    assert "--allow-remote" in ended.stderr


def test_metrics_and_health_are_shown(tmp_path: Path) -> None:
    with Served(tmp_path, "--metrics-port", "0", "--log-level", "info", "--log-format", "json") as served:
        assert served.process.stderr is not None
        lines = (json.loads(line) for line in served.process.stderr)
        pages = next(line["pages"] for line in lines if line["message"] == "ready")
        with urllib.request.urlopen(f"{pages}/healthz", timeout=30) as answer:
            assert answer.read() == b"ok\n"
        with urllib.request.urlopen(f"{pages}/metrics", timeout=30) as answer:
            assert b"ixion_info{" in answer.read()


@pytest.mark.skipif(os.geteuid() == 0 and sys.platform != "linux", reason="root may read and write everything")
@pytest.mark.parametrize("mode", [0o300, 0o500], ids=["unreadable", "unwritable"])
def test_a_directory_that_is_closed_to_us(mode: int, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=mode)
    ended = serve_and_wait("--port", "0", "--data", "closed", cwd=tmp_path, humbly=True)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "cannot be read and written by this user" in ended.stderr
    assert ended.stderr.count("\n") == 1
    closed.chmod(0o700)
    assert list(closed.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--port", "0", "--set", "listeners=PLAINTEXT://127.0.0.1:0"), "--port is short for"),
        (("--prot", "1"), "there is no option --prot; did you mean '--port'?"),
        (("--port", "many"), "--port must be a whole number, not 'many'"),
        (("--port", "0.0.0.0:9092"), "--set listeners=PLAINTEXT://0.0.0.0:9092 --allow-remote"),
        (("--log-level", "loud"), "--log-level must be one of"),
        (("--metrics-port", "x:y"), "--metrics-port must be"),
        (("now",), "'now' is one word too many"),
    ],
)
def test_a_wrong_command_line_is_an_error(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    ended = serve_and_wait(*words, cwd=tmp_path)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert ended.stderr.startswith("ixion serve: ")
    assert ended.stderr.endswith("(see ixion serve --help)\n")
    assert ended.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
