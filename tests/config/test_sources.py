"""File, environment and command line; fallbacks; warnings and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from ixion.config.broker import BrokerConfig
from ixion.config.cluster_settings import NUM_PARTITIONS
from ixion.config.errors import InvalidSettingError
from ixion.config.log_settings import LOG_DIRS, LOG_RETENTION_HOURS, LOG_RETENTION_MS, LOG_ROLL_MS
from ixion.config.sources import exposed, load

HOUR_MS = 3_600_000


def test_later_sources_win(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nlog.dirs=/file\nlog.retention.hours=3\n")
    environment = {"IXION_NUM_PARTITIONS": "4", "IXION_LOG_DIRS": "/env", "HOME": "/x"}
    loaded = load(file=file, environment=environment, assignments=["log.dirs=/a=b,/c"])
    assert loaded.given == {"num.partitions": "4", "log.dirs": "/a=b,/c", "log.retention.hours": "3"}
    assert loaded.config[NUM_PARTITIONS] == 4
    assert loaded.config[LOG_DIRS] == "/a=b,/c"
    assert loaded.warnings == ()


def test_nothing_given_is_all_defaults() -> None:
    loaded = load()
    assert loaded.given == {}
    assert loaded.config[NUM_PARTITIONS] == 1
    assert loaded.config[LOG_DIRS] == "ixion-data"


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({}, 168 * HOUR_MS),
        ({"log.retention.hours": "1"}, HOUR_MS),
        ({"log.retention.hours": "1", "log.retention.minutes": "1"}, 60_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "1", "log.retention.ms": "1"}, 1),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-1"}, -1),
    ],
)
def test_fallbacks_in_their_units(given: dict[str, str], retention_ms: int) -> None:
    config = BrokerConfig(given)
    assert config[LOG_RETENTION_MS] == retention_ms
    assert config.text(LOG_RETENTION_MS) == given.get("log.retention.ms")
    assert config[LOG_RETENTION_HOURS] == int(given.get("log.retention.hours", "168"))
    assert config[LOG_ROLL_MS] == 168 * HOUR_MS


def test_unknown_names_warn_with_the_nearest(tmp_path: Path) -> None:
    file = tmp_path / "s.properties"
    file.write_text("log.dir.s=/x\nmy.own.thing=1\n")
    environment = {"IXION_LOG_DIR_S": "/x", "IXION_CACHE": "/y"}
    loaded = load(file=file, environment=environment, assignments=["num.partition=3"])
    assert loaded.given == {}
    assert loaded.warnings == (
        f"unknown setting log.dir.s in {file}; did you mean 'log.dirs'?",
        f"unknown setting my.own.thing in {file}",
        "unknown setting IXION_LOG_DIR_S in the environment; did you mean 'IXION_LOG_DIRS'?",
        "unknown setting num.partition in --set; did you mean 'num.partitions'?",
    )


def test_wrong_values_stop_and_say_where(tmp_path: Path) -> None:
    file = tmp_path / "s.properties"
    file.write_text("num.partitions=0\n")
    with pytest.raises(
        InvalidSettingError, match=r"^num.partitions is '0' \(in .*s.properties\), but must be .* least 1$"
    ):
        load(file=file, assignments=["num.partitions=1"])
    with pytest.raises(InvalidSettingError, match=r"'x' \(in the environment\)"):
        load(environment={"IXION_NUM_PARTITIONS": "x"})
    with pytest.raises(InvalidSettingError, match=r"'x' \(in --set\)"):
        load(assignments=["num.partitions=x"])
    with pytest.raises(InvalidSettingError, match=r"--set is 'num.partitions', but must be name=value"):
        load(assignments=["num.partitions"])
    with pytest.raises(InvalidSettingError, match="No such file"):
        load(file=tmp_path / "nowhere")
    file.write_text("a=\\u12x")
    with pytest.raises(InvalidSettingError, match="four hexadecimal digits"):
        load(file=file)


def test_a_listener_has_a_limit_of_its_own() -> None:
    loaded = load(assignments=["listener.name.internal.max.connections=7"])
    assert loaded.warnings == ()
    assert loaded.config.max_connections_of == {"INTERNAL": 7}
    with pytest.raises(InvalidSettingError, match=r"max.connections is 'many'"):
        load(assignments=["listener.name.internal.max.connections=many"])


@pytest.mark.parametrize("name", ["process.roles", "controller.quorum.voters", "controller.quorum.bootstrap.servers"])
def test_settings_of_kraft_are_refused(name: str, tmp_path: Path) -> None:
    """Otherwise a broker would start alone, while its user takes it for a member of a cluster."""
    file = tmp_path / "server.properties"
    file.write_text(f"{name}=x\n")
    variable = f"IXION_{name.upper().replace('.', '_')}"
    reason = f"{name} is 'x', but must be left out: ixion does not run in KRaft mode"
    with pytest.raises(InvalidSettingError, match=reason):
        load(file=file)
    with pytest.raises(InvalidSettingError, match=reason):
        load(assignments=[f"{name}=x"])
    with pytest.raises(InvalidSettingError, match=reason):
        load(environment={variable: "x"})


@pytest.mark.parametrize(
    "name",
    [
        "delegation.token.secret.key",
        "listener.name.external.ssl.keystore.password",
        "listener.name.external.plain.sasl.jaas.config",
    ],
)
def test_a_secret_on_a_command_line_gives_a_warning_that_does_not_show_it(name: str) -> None:
    (warning,) = exposed(["num.partitions=2", f"{name}=hunter2"])
    assert name in warning
    assert "hunter2" not in warning
