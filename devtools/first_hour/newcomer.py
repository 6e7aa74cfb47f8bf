"""Goes through one document as a newcomer does: types what stands there, and compares what comes."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from devtools.first_hour.document import Block, Step, blocks, steps
from devtools.first_hour.steady import steady

PATIENCE_S: Final = 300
USUAL: Final = "127.0.0.1:9092"
PIP: Final = re.compile("pip install ")
SERVING: Final = ("make run", "ixion serve")
SPARK: Final = re.compile("ixion pipeline (?!init)")
SESSION: Final = "from ixion.pipelines import open_session\nspark = open_session('newcomer')\n"
COMPINIT: Final = "autoload -U compinit; compinit -u -D\n"  # what a newcomer's ~/.zshrc has above our line


class Newcomer:
    """`transcript` is the document's commands with what they printed; `faults` names every line that differs."""

    def __init__(
        self,
        folder: Path,
        python: str,
        environment: Mapping[str, str],
        *,
        port: int = 9092,
        plugin: Sequence[str] = (),
        package: str = ".",
        clone: Path | None = None,
    ) -> None:
        """PYTHON has ixion; ENVIRONMENT finds `ixion` on its path. The broker listens on PORT.

        PLUGIN are words that bring the fixtures to pytest, if ixion is not installed. PACKAGE is what pip installs in
        place of the checkout. `make run` runs in a fresh clone of CLONE; without one, `ixion serve` takes its place.
        """
        self.transcript: list[str] = []
        self.faults: list[str] = []
        self._folder = folder
        self._python = python
        self._plugin = plugin
        self._package = package
        self._clone = clone
        self._bootstrap = f"127.0.0.1:{port}"
        self._environment = {**environment, "TZ": "UTC"}
        self._elsewhere = {"IXION_LISTENERS": f"PLAINTEXT://{self._bootstrap}", "IXION_BOOTSTRAP": self._bootstrap}
        if port == 9092:
            self._elsewhere.clear()
        self._broker: subprocess.Popen[str] | None = None
        self._files: dict[str, str] = {}  # of the run of pytest

    def read(self, page: str, without: Sequence[re.Pattern[str]] = ()) -> None:
        """Run the blocks of PAGE; commands that match one of WITHOUT are left out."""
        self.transcript.append(f"# {page}\n")
        found = blocks(page)
        with self._broker_at_the_end():
            if not any(step.command in SERVING for block in found if block.kind == "console" for step in steps(block)):
                self._serve()
            for at, block in enumerate(found):
                following = found[at + 1] if at + 1 < len(found) else Block("", "", 0)
                self._run(f"{page}:{block.line}", block, following, without)
            if self._files:
                self._test(page)

    def _run(self, where: str, block: Block, following: Block, without: Sequence[re.Pattern[str]]) -> None:
        if block.kind == "console":
            for step in steps(block):
                if any(pattern.search(step.command) for pattern in without):
                    self.transcript.append(f"$ {step.command}\n(not run here)\n")
                elif PIP.match(step.command):
                    self.install(where, step.command)
                elif step.command in SERVING:
                    self._compare(where, step, self._serve(step.command))
                else:
                    self._compare(where, step, self._execute("/bin/sh", "-c", step.command, **self._elsewhere))
        elif block.kind in ("bash", "zsh", "fish"):
            if shutil.which(block.kind) is None:
                self.transcript.append(f"({block.kind} is not installed)\n")
                return
            script = (COMPINIT if block.kind == "zsh" else "") + block.text
            printed = self._execute(block.kind, "-c", script)
            self._compare(where, Step(f"{block.kind} -c '{block.text.strip()}'", ""), printed)
        elif block.kind == "python" or (block.kind == "python spark" and SPARK not in without):
            shown = following.text if following.kind == "output" else ""
            self._script(where, block, shown)
        elif block.kind == "python test":
            self._files[f"test_{len(self._files)}.py"] = block.text
        elif block.kind == "python conftest":
            self._files["conftest.py"] = block.text

    def install(self, where: str, command: str) -> None:
        """pip prints what it likes; the end of it is shown if it fails."""
        words = [re.sub(r"^\.(?=\[|$)", self._package, word) for word in shlex.split(command)[2:]]
        pip = [self._python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
        done = subprocess.run(pip, capture_output=True, text=True, env=self._environment, check=False)
        self.transcript.append(f"$ {command}\n")
        if done.returncode:
            self.faults.append(f"{where}: {command}\n{done.stderr[-1000:]}")

    def _script(self, where: str, block: Block, shown: str) -> None:
        """What goes to standard error is for people: clients write there that a broker has gone."""
        code = (SESSION if block.kind == "python spark" else "") + block.text.replace(USUAL, self._bootstrap)
        done = subprocess.run(
            [self._python, "-c", code],
            capture_output=True,
            text=True,
            cwd=self._folder,
            env=self._environment,
            timeout=PATIENCE_S,
            check=False,
        )
        self._compare(where, Step(f"python <<'END'\n{block.text}END", shown), done.stdout)
        self.transcript.append(done.stderr)
        if done.returncode:
            self.faults.append(f"{where}: the script ended with {done.returncode}\n{done.stderr}")

    def _compare(self, where: str, step: Step, printed: str) -> None:
        self.transcript.append(f"$ {step.command}\n{printed}")
        shown, now = steady(step.command, step.shown), steady(step.command, printed)
        if shown != now:
            differing = "\n".join(difflib.unified_diff(shown, now, "shown", "printed", lineterm="", n=0))
            self.faults.append(f"{where}: {step.command}\n{differing}\n{printed}")

    def _execute(self, *command: str, **variables: str) -> str:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self._folder,
            env={**self._environment, **variables},
            timeout=PATIENCE_S,
            check=False,
        )
        return done.stdout

    def _serve(self, command: str = "ixion serve") -> str:
        """The first lines of a broker that goes on until the document is read."""
        assert self._broker is None, "it is running already"
        words, folder = [*command.split(), "--metrics-port", "off"], self._folder
        if command == "make run" and self._clone is None:
            words[:2] = ["ixion", "serve"]
        elif command == "make run":
            words[2:] = ["ARGS=--metrics-port off"]
            folder = self._folder / "clone"
            subprocess.run(["git", "clone", "--quiet", str(self._clone), str(folder)], check=True)
            self._activate(folder / ".venv")
        self._broker = subprocess.Popen(
            words,
            executable=shutil.which(words[0], path=self._environment["PATH"]),
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**self._environment, **self._elsewhere},
            start_new_session=True,  # so that Ctrl-C reaches make and all that it has started
        )
        assert self._broker.stdout is not None
        lines = [self._broker.stdout.readline()]
        while lines[-1] and not lines[-1].startswith("try: "):
            lines.append(self._broker.stdout.readline())
        return "".join(lines)

    def _activate(self, venv: Path) -> None:
        """As `source .venv/bin/activate`: from now on Python, pip and ixion are those of this environment."""
        self._python = str(venv / "bin" / "python")
        self._environment["PATH"] = f"{venv / 'bin'}{os.pathsep}{self._environment['PATH']}"
        self._environment["VIRTUAL_ENV"] = str(venv)

    @contextmanager
    def _broker_at_the_end(self) -> Iterator[None]:
        """Ctrl-C, as the newcomer ends the day."""
        try:
            yield
        finally:
            broker, self._broker = self._broker, None
            if broker is not None:
                os.killpg(broker.pid, signal.SIGINT)
                try:
                    broker.communicate(timeout=PATIENCE_S)
                finally:
                    broker.kill()
                if broker.returncode not in (0, -signal.SIGINT):  # the signal ends make itself
                    self.faults.append(f"ixion serve ended with {broker.returncode}")

    def _test(self, page: str) -> None:
        folder = self._folder / "tests"
        folder.mkdir()
        (self._folder / "pytest.ini").write_text("[pytest]\n")  # the checkout's, above, is not the newcomer's
        for name, text in self._files.items():
            (folder / name).write_text(text)
        printed = self._execute(self._python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *self._plugin, "tests")
        self.transcript.append(f"$ pytest\n{printed}")
        wanted = f"{sum(text.count('def test_') for text in self._files.values())} passed"
        if f"\n{wanted} in " not in f"\n{printed}":
            self.faults.append(f"{page}: pytest: {wanted} expected\n{printed}")
        self._files = {}
