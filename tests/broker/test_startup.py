"""The 27 steps in their order, taken down in reverse, and what stops a broker from starting."""

from __future__ import annotations

import logging
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ixion.broker.controller.configs import operations_to_configure
from ixion.broker.controller.planning import NewTopic
from ixion.broker.log.files import Files
from ixion.broker.log.meta_properties import FILE_NAME, MetaProperties, write_meta_properties
from ixion.broker.metadata import paths
from ixion.broker.metadata.errors import SessionExpiredError
from ixion.broker.startup import steps as startup
from ixion.broker.startup.config_changes import ConfigChanges
from ixion.broker.startup.errors import (
    InconsistentBrokerIdError,
    InconsistentBrokerMetadataError,
    InconsistentClusterIdError,
    StartupError,
)
from ixion.broker.startup.parts import Parts
from ixion.config.errors import InvalidSettingError
from ixion.config.log_settings import MESSAGE_MAX_BYTES
from tests.broker.served import environment
from tests.broker.support import broker_on, contents, run, running

ORDER = [
    "base_nodes",
    "cluster_id",
    "load_meta_properties",
    "cluster_check",
    "broker_id",
    "dynamic_config",
    "scheduler",
    "quotas",
    "log_manager",
    "metadata_cache",
    "credentials",
    "socket_server",
    "replica_manager",
    "registration",
    "write_meta_properties",
    "delegation_tokens",
    "controller",
    "internal_topics",
    "group_coordinator",
    "transaction_coordinator",
    "authorizer",
    "services",
    "request_handlers",
    "partitions_online",
    "config_manager",
    "processors",
    "started",
]


def test_there_are_27_steps_in_this_order_and_each_says_its_number() -> None:
    assert [step.__name__ for step in startup.STEPS] == ORDER
    for number, step in enumerate(startup.STEPS, 1):
        assert (step.__doc__ or "").startswith(f"{number}. ")


def start_logged(path: Path, caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    async def work() -> None:
        with caplog.at_level(level, "ixion.broker.startup.steps"):
            async with running(path):
                pass

    run(work)
    return [record.getMessage() for record in caplog.records if record.name == "ixion.broker.startup.steps"]


def test_one_line_names_the_slowest_steps(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (line,) = start_logged(tmp_path / "d", caplog, logging.INFO)
    found = re.fullmatch(r"broker \d+ of cluster \S+ started in ([\d.]+) ms; slowest steps: (.*)", line)
    assert found
    total, steps = float(found[1]), [step.split(" ") for step in found[2].split(", ")]
    took = [float(ms) for _, ms, unit in steps if unit == "ms"]
    assert len(took) == 3
    assert took == sorted(took, reverse=True)
    assert sum(took) <= total + 0.3, "each figure is rounded"
    assert {name for name, _, _ in steps} <= set(ORDER)


def test_each_step_is_logged_with_its_time_at_debug(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    *lines, _ = start_logged(tmp_path / "d", caplog, logging.DEBUG)
    assert [line.split()[2] for line in lines] == ORDER
    assert all(re.search(r"\d+\.\d ms$", line) for line in lines)


def test_what_was_started_last_is_stopped_first(tmp_path: Path) -> None:
    async def work() -> tuple[list[str], list[str]]:
        broker = broker_on(tmp_path / "d")
        await broker.start()
        made = [name for name, _ in broker.parts.undo]
        stopped: list[str] = []
        for place, (name, action) in enumerate(broker.parts.undo):

            def note(name: str = name, action: object = action) -> object:
                stopped.append(name)
                return action() if callable(action) else None

            broker.parts.undo[place] = (name, note)
        await broker.stop(drain_ms=100)
        return made, stopped

    made, stopped = run(work)
    assert made[:5] == ["timer", "metadata", "logs", "scheduler", "work on logs"], "threads before what they work on"
    assert stopped == [name for name in reversed(made) if name != "socket server"]


@pytest.mark.parametrize("failing", ORDER)
def test_whichever_step_fails_all_is_taken_down_and_the_next_start_succeeds(
    tmp_path: Path, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was made before is closed: the directory is free, the file unlocked, and no task or thread is left."""
    steps = list(startup.STEPS)

    async def fail(parts: Parts) -> None:
        raise StartupError("no")

    async def work() -> None:
        monkeypatch.setattr(startup, "STEPS", tuple(fail if s.__name__ == failing else s for s in steps))
        with pytest.raises(StartupError, match=r"^no$"):
            await broker_on(tmp_path / "d").start()
        assert not (tmp_path / "d").exists()
        monkeypatch.setattr(startup, "STEPS", tuple(steps))
        async with running(tmp_path / "d"):
            pass

    run(work)


def with_meta(path: Path, cluster_id: str | None = "c", node_id: int | None = 1) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    write_meta_properties(
        Files(), str(path / FILE_NAME), MetaProperties(version=0, cluster_id=cluster_id, node_id=node_id)
    )
    return path


def refused(
    *where: Path, because: str, kind: type[Exception] = StartupError, settings: dict[str, str] | None = None
) -> None:
    """The start fails with one line that says why, and nothing on the disk is other than before."""

    async def work() -> None:
        await broker_on(*where, **(settings or {})).start()

    before = contents(*where)
    with pytest.raises(kind, match=because) as error:
        run(work)
    assert "\n" not in str(error.value)
    assert contents(*where) == before


def test_directories_of_two_brokers(tmp_path: Path) -> None:
    one, two = with_meta(tmp_path / "1", node_id=1), with_meta(tmp_path / "2", node_id=2)
    refused(one, two, because="different brokers", kind=InconsistentBrokerMetadataError)


def test_directories_of_two_clusters(tmp_path: Path) -> None:
    one, two = with_meta(tmp_path / "1", cluster_id="c"), with_meta(tmp_path / "2", cluster_id="d")
    refused(one, two, because="different brokers", kind=InconsistentBrokerMetadataError)


def test_meta_properties_that_cannot_be_read(tmp_path: Path) -> None:
    where = with_meta(tmp_path / "1")
    (where / FILE_NAME).write_bytes(b"version=7\nnode.id=many\n")
    refused(where, because="meta.properties", kind=InconsistentBrokerMetadataError)


def test_another_broker_id_than_the_directory_has(tmp_path: Path) -> None:
    where = with_meta(tmp_path / "1", node_id=5)
    refused(where, because="broker.id is 6.*broker 5", kind=InconsistentBrokerIdError, settings={"broker.id": "6"})


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """A directory that a broker has used: with metadata, a topic, its meta.properties."""
    where = tmp_path / "used"

    async def work() -> None:
        async with running(where) as broker:
            await broker.parts.controller.topics.create([NewTopic(name="t")])

    run(work)
    return where


def test_metadata_of_another_cluster(used: Path) -> None:
    (used / FILE_NAME).unlink()
    with_meta(used, cluster_id="another", node_id=1001)
    refused(used, because="belongs to cluster another", kind=InconsistentClusterIdError)


def test_another_broker_id_than_a_used_directory_has(used: Path) -> None:
    refused(used, because="broker.id is 7", kind=InconsistentBrokerIdError, settings={"broker.id": "7"})


def test_a_port_in_use(used: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for where in (used, tmp_path / "new"):
            refused(
                where,
                because=rf"127\.0\.0\.1:{port} is in use",
                settings={"listeners": f"PLAINTEXT://127.0.0.1:{port}"},
            )


def test_a_directory_that_another_broker_uses(used: Path) -> None:
    async def work() -> None:
        async with running(used):
            before = {path: data for path, data in contents(used).items() if "sqlite" not in path}
            with pytest.raises(StartupError, match=r"lock|in use") as error:
                await broker_on(used).start()
            assert "\n" not in str(error.value)
            assert {path: data for path, data in contents(used).items() if "sqlite" not in path} == before

    run(work)


def test_a_file_where_a_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("mine")
    refused(tmp_path / "f", because="is not a directory")
    refused(tmp_path / "f" / "below", because="cannot be made|is not a directory|cannot be used")
    assert (tmp_path / "f").read_text() == "mine"


def test_metadata_that_is_no_metadata(used: Path) -> None:
    (used / "metadata.sqlite").write_bytes(b"this is not a database, and nobody should write over it" * 100)
    refused(used, because="metadata.sqlite")


@pytest.mark.parametrize(
    ("settings", "because"),
    [
        (
            {"listeners": "PLAINTEXT://0.0.0.0:0", "advertised.listeners": "PLAINTEXT://example.org:9092"},
            "--allow-remote",
        ),
        ({"listeners": "PLAINTEXT://:0"}, "--allow-remote"),
        ({"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}, "a PEM file with key"),
        ({"authorizer.class.name": "kafka.Authorizer"}, "kafka.security.authorizer.AclAuthorizer"),
    ],
)
def test_settings_that_would_leave_the_broker_open_are_refused(
    used: Path, tmp_path: Path, settings: dict[str, str], because: str
) -> None:
    for where in (used, tmp_path / "new"):
        refused(where, because=because, settings=settings)


@pytest.mark.parametrize("setting", [{"num.partitions": "many"}, {"log.retention.ms": "-7"}, {"listeners": "nonsense"}])
def test_a_bad_setting_names_itself(used: Path, setting: dict[str, str]) -> None:
    ((name, _value),) = setting.items()
    refused(used, because=re.escape(name), kind=InvalidSettingError, settings=setting)


def test_the_same_directory_twice(tmp_path: Path) -> None:
    refused(tmp_path / "d", tmp_path / "d", because="twice")


def test_ids_are_kept_or_drawn(tmp_path: Path) -> None:
    async def start(where: Path, **settings: str) -> tuple[int, str]:
        async with running(where, **settings) as broker:
            return broker.parts.node_id, broker.parts.cluster_id

    async def work() -> None:
        node_id, cluster_id = await start(tmp_path / "drawn")
        assert node_id > 1000  # reserved.broker.max.id
        assert await start(tmp_path / "drawn") == (node_id, cluster_id)
        assert (await start(tmp_path / "given", broker_id="7"))[0] == 7
        assert (await start(tmp_path / "given"))[0] == 7
        known = with_meta(tmp_path / "known", cluster_id="theirs", node_id=3)
        assert await start(known) == (3, "theirs")

    run(work)


def test_a_broker_registers_for_as_long_as_it_runs(tmp_path: Path) -> None:
    async def work() -> None:
        async with running(tmp_path / "d", broker_id="7") as broker:
            assert await broker.parts.session.exists(paths.broker(7)) is not None
            assert broker.parts.image.controller_id == 7
            assert broker.parts.image.brokers[7].endpoints["PLAINTEXT"] == ("127.0.0.1", broker.endpoints[0].port)

    run(work)


def test_a_broker_alone_imports_no_message_table_and_nothing_for_other_brokers() -> None:
    code = "import sys, ixion.broker.startup.broker; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    loaded = [name for name in ran.stdout.split() if name.startswith("ixion.")]
    assert [name for name in loaded if name.startswith("ixion.language.protocol.messages.k")] == []
    assert {"ixion.broker.replica.fetcher", "ixion.clients.channel", "ixion.broker.startup.renewing"}.isdisjoint(loaded)


def test_a_session_that_expires_during_the_start_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def expires(_parts: Parts) -> None:
        raise SessionExpiredError("/controller_epoch", "the session is expired")

    steps = [expires if step.__name__ == "controller" else step for step in startup.STEPS]
    monkeypatch.setattr(startup, "STEPS", tuple(steps))

    async def work() -> None:
        with pytest.raises(StartupError, match=r"the metadata store failed in step 17 \(expires\): /controller_epoch"):
            await broker_on(tmp_path / "d").start()

    run(work)
    assert not (tmp_path / "d").exists()


def test_a_setting_that_changes_while_the_broker_starts_is_in_force_when_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start reads the settings first and follows changes last; between the two it may recover logs for minutes."""
    start = ConfigChanges.start

    async def changed_before(changes: ConfigChanges) -> None:
        session = changes._parts.session
        for kind, entity, config in (
            ("brokers", paths.DEFAULT_ENTITY, {"message.max.bytes": "4711"}),
            ("clients", "app", {"producer_byte_rate": "1000"}),
        ):
            await session.multi(operations_to_configure(kind, entity, config, version=None))
        await start(changes)

    async def work() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(ConfigChanges, "start", changed_before)
            async with running(tmp_path) as broker:
                assert broker.parts.config.current[MESSAGE_MAX_BYTES] == 4711
                assert broker.parts.quotas.limits.any
        async with running(tmp_path) as broker:
            assert broker.parts.config.current[MESSAGE_MAX_BYTES] == 4711

    run(work)
