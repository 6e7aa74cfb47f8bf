"""What a run shows on a terminal: lines that stay, one that is redrawn, a summary; and how it ends when interrupted."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devtools.parts import need_module
from tests.pipelines.processes import Served
from tests.pipelines.support import PATIENCE_S, SMALL, Lab, column, parquet_rows, send, spark_jars


def on_terminal(*words: str, interrupt: Callable[[int, bytes], bool] | None = None) -> tuple[int, bytes]:
    """Runs `ixion pipeline WORDS`. Its exit code and all it wrote.

    INTERRUPT is asked time and again, with the process group and what was written so far, until it says when to press
    Ctrl-C.
    """
    command = [sys.executable, "-m", "ixion", "pipeline", *words, "--jars", ",".join(spark_jars("kafka"))]
    command += [word for name, value in SMALL.items() for word in ("--conf", f"{name}={value}")]
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    shown = b""
    try:
        while True:
            if select.select([ours], [], [], 0.01)[0]:
                shown += os.read(ours, 65536)
            if interrupt is not None and interrupt(process.pid, shown):
                os.killpg(process.pid, signal.SIGINT)  # as a terminal does
                interrupt = None
    except OSError:  # the other side is closed
        pass
    finally:
        os.close(ours)
    code = process.wait(PATIENCE_S)
    until_gone(process.pid)
    return code, shown


def has_jvm(group: int) -> bool:
    found = subprocess.run(["ps", "-ww", "-eo", "pgid,args"], capture_output=True, text=True, check=True).stdout
    return any(line.split()[0] == str(group) and "PythonGatewayServer" in line for line in found.splitlines())


def until_gone(group: int) -> None:
    """Nothing that the command started may stay."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    raise AssertionError("a process of the command is still there")


def screen(shown: bytes) -> list[str]:
    """The lines that are there in the end: what was wiped (ESC [2K) is gone, one may be wiped from below (ESC [1A)."""
    lines = [""]
    for piece in re.split(r"(\r\n|\x1b\[1A|\x1b\[2K|\r|\x1b\[[?\d;]*[a-zA-Z])", shown.decode()):
        if piece == "\r\n":
            lines.append("")
        elif piece == "\x1b[1A":
            lines.pop()
        elif piece == "\x1b[2K":
            lines[-1] = ""
        elif not piece.startswith(("\r", "\x1b")):
            lines[-1] += piece
    return [line for line in lines if line]


SLOW = """
import time
from pyspark.sql import functions as F


@F.udf("string")
def slow(value):
    time.sleep(0.5 if value.startswith("slow") else 0)
    return value


def step(frame):
    return frame.withColumn("value", slow("value"))
"""


def test_lines_that_stay_one_that_is_redrawn_and_ctrl_c_when_the_broker_has_just_come_back(
    served: Served, tmp_path: Path
) -> None:
    """Batches of three: two quick ones, then slow ones. Ctrl-C: the one that was begun is finished, no other begun."""
    (tmp_path / "slow.py").write_text(SLOW)
    file = tmp_path / "p.toml"
    file.write_text(f"""
[source]
bootstrap = "{served.bootstrap}"
topics = ["letters"]
max_records_per_batch = 3
[format]
type = "text"
[[steps]]
python = "slow:step"
[[sinks]]
type = "parquet"
path = "out"
[[sinks]]
type = "console"
rows = 1
""")
    send(served.bootstrap, "letters", [*"abcdef", *(f"slow {number}" for number in range(30))])

    def when_the_broker_is_back(_: int, shown: bytes) -> bool:
        if b"batch 1 " not in shown or not list(tmp_path.glob(".out.staging/p/*/*/*")):
            return False
        served.kill()
        served.start()
        return True

    code, shown = on_terminal("run", str(file), "--follow", "--every", "100ms", interrupt=when_the_broker_is_back)
    left = [re.sub(r"[\d,.]+ (rows/s|s)\b", r"# \1", line) for line in screen(shown)]
    assert code == 0, left
    assert "finishing the batch; Ctrl-C again stops at once" in left
    assert "Traceback" not in shown.decode()
    rows = column(parquet_rows(tmp_path / "out"), "value")
    assert rows == [*"abcdef", *(f"slow {number}" for number in range(len(rows) - 6))]
    assert 6 < len(rows) < 36
    lines = [line for line in left if line.startswith("batch ") and "rows in" in line]
    assert lines == [
        f"batch {number} · 3 rows in · 3 out · # rows/s · lag {33 - 3 * number} · # s"
        for number in range(len(rows) // 3)
    ]
    summary = f"{len(lines)} batches · {len(rows)} rows in · {len(rows)} out · # rows/s · lag {36 - len(rows)}"
    assert left[-3:] == [summary, f"→ parquet {tmp_path}/out", "→ console"]
    assert left.count("only showing top 1 row") == len(lines)
    assert not [line for line in left if "waiting for records" in line]
    redrawn = set(re.findall(r"(\d rows in) · [\d,]+ rows/s · (lag \d+)\r\x1b\[2K", shown.decode()))
    assert ("3 rows in", "lag 33") in redrawn


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(lambda _, shown: b"starting Spark" in shown, id="before-the-jvm"),
        pytest.param(lambda group, _: has_jvm(group), id="while-it-is-launched"),
    ],
)
def test_ctrl_c_in_a_check(lab: Lab, moment: Callable[[int, bytes], bool]) -> None:
    rest = '[format]\ntype = "text"\n[[sinks]]\ntype = "console"\n'
    file = lab.folder / "p.toml"
    file.write_text(f'[source]\nbootstrap = "{lab.bootstrap}"\ntopics = ["a"]\n{rest}')
    code, shown = on_terminal("check", str(file), interrupt=moment)
    assert code == 130, screen(shown)
    assert screen(shown)[-1] == "stopped"
    assert "Traceback" not in shown.decode()


@pytest.mark.parametrize("after_s", [0.0, 0.7])
@pytest.mark.parametrize("how", ["ctrl-c", "interrupt", "terminate", "kill"])
def test_no_jvm_stays_when_a_command_is_ended_while_spark_starts(lab: Lab, how: str, after_s: float) -> None:
    """As soon as there is a JVM, when it is not ready; and a moment later, when it is."""
    file = lab.folder / "p.toml"
    rest = '[format]\ntype = "text"\n[[sinks]]\ntype = "console"\n'
    file.write_text(f'[source]\nbootstrap = "{lab.bootstrap}"\ntopics = ["{lab.topic}"]\n{rest}')
    command = [sys.executable, "-m", "ixion", "pipeline", "check", str(file), "--jars", ",".join(spark_jars("kafka"))]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not has_jvm(process.pid):
        assert process.poll() is None
    time.sleep(after_s)
    if how == "ctrl-c":
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal({"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}[how])
    said = process.communicate(timeout=PATIENCE_S)[1]
    # A command ends itself with 128 + the signal, unless the signal came before it had installed its handlers.
    expected = {"terminate": {143, -signal.SIGTERM}, "kill": {-signal.SIGKILL}}.get(how, {130})
    assert process.returncode in expected, said
    assert "Traceback" not in said
    until_gone(process.pid)


def test_an_error_that_follows_an_interrupt_is_the_interrupt() -> None:
    """Calls to the JVM that clean up fail on the connection of the call that was interrupted."""
    need_module("pyspark")
    from ixion.pipelines import Pipeline
    from ixion.pipelines.spec import read_spec

    class Interrupted:
        @property
        def sparkContext(self) -> object:  # noqa: N802 - Spark's name
            try:
                raise KeyboardInterrupt
            finally:
                raise OSError("Answer from Java side is empty")

    text = '[source]\ntopics = ["a"]\n[format]\ntype = "text"\n[[sinks]]\ntype = "console"\n'
    spark: Any = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        Pipeline(read_spec(f'name = "p"\n{text}', folder=Path("/nowhere"))).check(spark)
