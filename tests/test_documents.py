"""What the documents say of the project is true: the map lists the packages, the links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker.served import READY, Served, environment
from tests.testing.test_plugin import run_pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
DOCUMENTS.append(ROOT / "docs" / "testing.md")


def test_the_map_lists_every_package() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    packages = [path.parent.name for path in (ROOT / "src" / "ixion").glob("*/__init__.py")]
    assert sorted(rows) == sorted(packages)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", document.read_text())
    assert [link for link in links if "://" not in link and not (document.parent / link).exists()] == []


def snippets(kind: str) -> list[str]:
    found = re.findall(r"^```(.*)\n((?:.*\n)*?)```", (ROOT / "README.md").read_text(), re.MULTILINE)
    return [code for tag, code in found if tag == kind]


def test_the_readmes_timer_snippet_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (snippet,) = snippets("python timer")
    exec(compile(snippet, "README.md", "exec"), {})
    assert capsys.readouterr().out == "hello\n"


def test_the_readmes_first_minute(tmp_path: Path) -> None:
    (ready,) = [line for line in snippets("") if line.startswith("ixion ")]
    assert READY.fullmatch(ready)
    (shell,), (script,) = snippets("sh"), snippets("python")
    with Served(tmp_path) as served:
        env = environment() | {"IXION_BOOTSTRAP": served.bootstrap}
        ixion = f'ixion() {{ "{sys.executable}" -m ixion "$@"; }}\nset -e\n'
        said = subprocess.check_output(["bash", "-c", ixion + shell], env=env, text=True, timeout=60)
        assert "hello, wheel\n" in said
        assert "greetings" in said
        script = script.replace("127.0.0.1:9092", served.bootstrap)
        subprocess.run([sys.executable, "-c", script], env=env, check=True, timeout=60)
        seen = subprocess.check_output(["bash", "-c", ixion + "ixion consume greetings -e"], env=env, text=True)
    assert seen == "hello, wheel\nhello from librdkafka\n"


def test_the_readmes_test_passes(tmp_path: Path) -> None:
    (test,) = snippets("python test")
    ended = run_pytest(tmp_path, test)
    assert ended.returncode == 0, ended.stdout
