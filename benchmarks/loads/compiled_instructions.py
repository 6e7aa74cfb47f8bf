"""How many instructions of the processor a compiled broker needs for a produce and for a fetch of an ordinary topic.

    python -m benchmarks.loads.compiled_instructions [FOLDER]       prints two numbers, of the copy in FOLDER

Counted by valgrind, which runs the broker on a processor of its own making. A broker is counted from its start to its
end, three times: with few requests, with `MANY` produces more, and with `MANY` fetches more. The differences are the
requests, and what the broker does as time passes (timers, polls): on a busy machine a copy without the feature needed
4 % more than one with it, so there this does not resolve the 1 % of A19.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.loads.prepared import check_answer, compile_repeat, fetch_request, framed, produce_request, repeat
from benchmarks.loads.schedulers.kafka_protocol import create
from devtools.kafka import free_port
from devtools.programs import tool
from ixion.language.protocol.registry import ApiKey

CHECKOUT = Path(__file__).resolve().parents[2]
FEW, MANY = 500, 10_000
WINDOW = 8  # requests in flight, so that the broker never waits for one
PRODUCE, FETCH = 9, 12  # versions
BUILT_FROM = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "MANIFEST.in")


def build(tree: Path) -> Path:
    """Compile the sources in a folder as an installation does. Where they are installed; takes minutes."""
    folder = tree.parent
    for name in BUILT_FROM:
        shutil.copy(CHECKOUT / name, folder / name)
    packages = folder / "packages"
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    environment = {**os.environ, "IXION_REQUIRE_COMPILED": "1"}
    subprocess.run([*words, "--target", str(packages), str(folder)], env=environment, check=True)
    return packages


def count_compiled(packages: Path | None) -> tuple[float, float]:
    """For a produce, and for a fetch."""
    with tempfile.TemporaryDirectory(prefix="instructions-") as folder:
        program = compile_repeat(Path(folder))
        few = count(program, packages, FEW, FEW)
        produces = count(program, packages, FEW + MANY, FEW)
        fetches = count(program, packages, FEW, FEW + MANY)
    return (produces - few) / MANY, (fetches - few) / MANY


def count(program: Path, packages: Path | None, produces: int, fetches: int) -> int:
    """Instructions of a broker that answers so many requests."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(packages or "")}
    with tempfile.TemporaryDirectory(prefix="instructions-") as data:
        check_compiled(environment, data)
        port = free_port()
        words = [tool("valgrind"), "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
        words += [sys.executable, "-m", "ixion", "serve", "--data", data, "--port", str(port)]
        process = subprocess.Popen(words, env=environment, cwd=data, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        try:
            create(f"127.0.0.1:{port}", {"plain": {}})
            for key, version, body, requests in (
                (ApiKey.PRODUCE, PRODUCE, produce_request("plain", 1, 100), produces),
                (ApiKey.FETCH, FETCH, fetch_request("plain", 100), fetches),
            ):
                check_answer(port, key, version, body)
                repeat(program, port, framed(key, version, body), connections=1, window=WINDOW, requests=requests)
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait()
    found = re.search(rb"I\s+refs:\s+([\d,]+)", said)
    if found is None:
        raise RuntimeError(said.decode(errors="replace"))
    return int(found[1].replace(b",", b""))


def check_compiled(environment: dict[str, str], folder: str) -> None:
    asked = "from ixion.cli.main import build_kind; print(build_kind())"
    done = subprocess.run(
        [sys.executable, "-c", asked], env=environment, cwd=folder, capture_output=True, text=True, check=True
    )
    if done.stdout.strip() != "compiled":
        raise RuntimeError(f"the copy to be counted is {done.stdout.strip()}")


if __name__ == "__main__":
    print(*count_compiled(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
