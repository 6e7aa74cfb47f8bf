"""packaging/: the container and the service start a broker with what the files say, as far as a test can try that."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from devtools.kafka import free_port
from ixion.cli.parse import parse
from ixion.cli.serve.commands import SERVE
from ixion.cli.serve.run import STOP_SECONDS
from tests.broker.served import environment

ROOT = Path(__file__).resolve().parents[2]
CONTAINER = (ROOT / "packaging" / "Containerfile").read_text().replace("\\\n", "")
SERVICE = ROOT / "packaging" / "ixion.service"
INSTRUCTION = re.compile(r"^([A-Z]+) +(.*)$", re.MULTILINE)


def instructions(name: str) -> list[str]:
    return [words for found, words in INSTRUCTION.findall(CONTAINER) if found == name]


def test_what_is_copied_exists_and_suffices_for_a_build() -> None:
    copied = {
        name for words in instructions("COPY") if "--from" not in words for name in words.split()[:-1] if name != "."
    }
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert {"pyproject.toml", "setup.py", "README.md", "LICENSE", "src"} <= copied


def test_it_does_not_run_as_root_and_its_base_is_small() -> None:
    assert instructions("USER") == ["10001"]
    assert "--uid 10001" in CONTAINER
    assert {words.split()[0] for words in instructions("FROM")} == {"python:3.13-slim"}


def test_the_container_serves_and_its_health_check_agrees(tmp_path: Path) -> None:
    port, pages = free_port(), free_port()
    variables = dict(words.split("=", 1) for words in instructions("ENV"))
    assert variables["IXION_LOG_DIRS"] in instructions("VOLUME")
    assert variables["IXION_LISTENERS"] == f"PLAINTEXT://:{instructions('EXPOSE')[0]}"
    here = {name: value.replace("9092", str(port)) for name, value in variables.items()}
    here["IXION_LOG_DIRS"] = str(tmp_path / "data")
    command = [*json.loads(instructions("ENTRYPOINT")[0]), *json.loads(instructions("CMD")[0])]
    assert command[0] == "ixion"
    words = [sys.executable, "-m", *command, "--metrics-port", str(pages)]
    with subprocess.Popen(words, env=environment() | here, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout is not None
            assert f"ready on *:{port}" in broker.stdout.readline()
            (health,) = re.findall(r"CMD (\[.*\])", "\n".join(instructions("HEALTHCHECK")))
            check = [word.replace(":9644", f":{pages}") for word in json.loads(health)]
            subprocess.run([sys.executable, *check[1:]], check=True)
            wrong = [word.replace(f":{pages}", f":{free_port()}") for word in check]
            assert subprocess.run([sys.executable, *wrong[1:]], stderr=subprocess.DEVNULL).returncode == 1
        finally:
            broker.terminate()


def service() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(SERVICE)
    return unit["Service"]


def test_the_service_runs_a_command_that_there_is_and_waits_for_a_clean_stop() -> None:
    program, command, *words = shlex.split(service()["ExecStart"])
    assert (Path(program).name, command) == ("ixion", "serve")
    values = parse(SERVE, words, {})
    assert values["data"] == "/var/lib/ixion"
    assert service()["StateDirectory"] == "ixion"
    assert int(service()["TimeoutStopSec"].removesuffix("s")) > STOP_SECONDS
    assert service()["DynamicUser"] == "yes"


def test_systemd_understands_the_service_where_it_is_installed(tmp_path: Path) -> None:
    unit = tmp_path / "ixion.service"
    unit.write_text(SERVICE.read_text().replace("/opt/ixion/bin/ixion", "/bin/true"))
    if shutil.which("systemd-analyze") is not None:
        done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
