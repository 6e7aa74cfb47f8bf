"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.broker.served import environment

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted",
    reason="the same in both runs; done in the compiled one",
)

HEAVY = ("asyncio", "dataclasses", "ixion.broker", "ixion.testing.broker", "sqlite3", "typer", "uvloop")


def run_pytest(tmp_path: Path, test: str, *words: str, conftest: str = "") -> subprocess.CompletedProcess[str]:
    (tmp_path / "test_it.py").write_text(test)
    (tmp_path / "conftest.py").write_text(conftest)
    # An installed ixion is found by its entry point; the sources alone have none.
    by_hand = () if entry_points(group="pytest11", name="ixion") else ("-p", "ixion.testing.plugin")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", *by_hand, *words, "."],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )


PRODUCE = """
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

def look(broker, topic):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "allow.auto.create.topics": False})
    return admin.list_topics(topic, timeout=30).topics[topic]
"""


def test_a_fresh_broker_for_each_test_and_one_for_all(tmp_path: Path) -> None:
    ended = run_pytest(
        tmp_path,
        PRODUCE
        + """
seen = []

@pytest.mark.parametrize("turn", [1, 2])
def test_fresh(ixion_broker, turn):
    ixion_broker.create_topic("t")  # twice would be an error
    assert look(ixion_broker, "t").error is None

@pytest.mark.parametrize("turn", [1, 2])
def test_shared(ixion_broker_session, turn):
    seen.append(ixion_broker_session.bootstrap)
    if turn == 1:
        ixion_broker_session.create_topic("t")
    assert look(ixion_broker_session, "t").error is None
    assert len(set(seen)) == 1
""",
    )
    assert ended.returncode == 0, ended.stdout
    assert "4 passed" in ended.stdout


def test_settings_come_from_markers_and_from_a_fixture(tmp_path: Path) -> None:
    ended = run_pytest(
        tmp_path,
        PRODUCE
        + """
def touch(broker):
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("t", b"x")
    assert producer.flush(30) == 0
    return len(look(broker, "t").partitions)

def test_from_the_fixture(ixion_broker):
    assert touch(ixion_broker) == 2

def test_from_the_fixture_too(ixion_broker_session):
    assert touch(ixion_broker_session) == 2

@pytest.mark.ixion(**{"num.partitions": 3})
class TestClass:
    def test_from_the_class(self, ixion_broker):
        assert touch(ixion_broker) == 3

    @pytest.mark.ixion(num_partitions=4, memory=True, metrics=True)
    def test_the_nearest_wins(self, ixion_broker):
        assert touch(ixion_broker) == 4
        assert ixion_broker.metrics_url
""",
        conftest='import pytest\n\n@pytest.fixture(scope="session")\n'
        'def ixion_settings():\n    return {"num.partitions": 2}\n',
    )
    assert ended.returncode == 0, ended.stdout
    assert "4 passed" in ended.stdout


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("ixion(num_partitoins=3)", "unknown setting num.partitoins"),
        ("ixion(num_partitions='x')", "num.partitions is 'x'"),
        ("ixion(3)", "takes settings by name"),
    ],
)
def test_wrong_markers_are_explained(tmp_path: Path, marker: str, said: str) -> None:
    test = f"import pytest\n\n@pytest.mark.{marker}\ndef test_it(ixion_broker):\n    pass\n"
    ended = run_pytest(tmp_path, test)
    assert ended.returncode == 1
    assert said in ended.stdout


def test_a_run_without_the_fixtures_imports_no_broker() -> None:
    code = f"import ixion.testing.plugin, sys, pytest; print([name for name in {HEAVY} if name in sys.modules])"
    # pytest itself needs some of them; what counts is what the plugin adds.
    bare = subprocess.check_output(
        [sys.executable, "-c", code.replace("ixion.testing.plugin, ", "")], env=environment()
    )
    with_it = subprocess.check_output([sys.executable, "-c", code], env=environment())
    assert with_it == bare
