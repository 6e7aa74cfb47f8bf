"""Draws docs/first-minute.svg, the terminal at the top of the README, from what the commands really print.

python -m devtools.first_minute
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from devtools.kafka import free_port

PICTURE: Final = Path(__file__).resolve().parent.parent / "docs" / "first-minute.svg"
USUAL_PORT: Final = "9092"
COMMANDS: Final = (
    'echo "hello, wheel" | ixion produce greetings',
    "ixion consume greetings --exit-at-end",
    "ixion topic list",
)
# rich would load its font from another site; the reader's own monospaced font does as well.
FONT: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
COMMENT: Final = re.compile(r"<!--.*?-->\s*", re.DOTALL)


def record() -> list[tuple[str, str]]:
    """Each command with what it printed. The broker listens on a free port, and the picture shows the usual one."""
    port = str(free_port())
    paths = os.pathsep.join(path for path in sys.path if path)  # the same ixion, in whatever folder
    environment = os.environ | {"IXION_BOOTSTRAP": f"127.0.0.1:{port}", "PYTHONPATH": paths}
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "ixion", "serve", "--port", port, "--metrics-port", "off"]
        broker = subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
        assert broker.stdout is not None
        shown = [("ixion serve &", broker.stdout.readline().replace(port, USUAL_PORT))]
        try:
            for command in COMMANDS:
                line = re.sub(r"\bixion\b", f'"{sys.executable}" -m ixion', command)
                done = subprocess.run(
                    line, shell=True, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                )
                shown.append((command, done.stdout))
        finally:
            broker.terminate()
            broker.communicate()
    return shown


def draw(shown: list[tuple[str, str]]) -> str:
    console = Console(record=True, width=88, file=open(os.devnull, "w"))  # noqa: SIM115
    for command, printed in shown:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        console.print(Text(printed.rstrip("\n")))
    picture = console.export_svg(title="ixion", theme=MONOKAI, unique_id="ixion")
    return COMMENT.sub("", FONT.sub("", picture))


if __name__ == "__main__":
    PICTURE.write_text(draw(record()))
