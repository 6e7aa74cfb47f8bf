"""What the documents say of the project is true: the packages of the map, links, versions, ways to install it."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from ixion import __version__
from ixion.pipelines.errors import NoSparkError

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
DOCUMENTS += sorted((ROOT / "docs").glob("*.md"))


def test_the_map_lists_every_package() -> None:
    rows = re.findall(r"^\| `([a-z.]+)` \|", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    source = ROOT / "src" / "ixion"
    packages = [*source.glob("*/__init__.py"), *(source / "broker").glob("*/__init__.py")]
    packages += (source / "language").glob("*/__init__.py")
    assert sorted(rows) == sorted(path.parent.relative_to(source).as_posix().replace("/", ".") for path in packages)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", document.read_text())
    assert [link for link in links if "://" not in link and not (document.parent / link).exists()] == []


# Change this when the name is registered: until then `pip install ixion` installs nothing, or a stranger's package.
ON_AN_INDEX = False
PROMISE = re.compile(r"""pip install [^\n`#]*?(?<![\w./])ixion(?![\w.-])""")


def pages() -> list[Path]:
    """Everything that tells a user what to type: documents, help pages, messages, examples."""
    folders = ("src", "docs", "examples", "benchmarks", "devtools")
    return [
        *ROOT.glob("*.md"),
        *(path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".md", ".py", ".toml")),
    ]


def test_no_page_promises_a_package_index() -> None:
    told = [path for path in pages() if path.name != "CHANGELOG.md" and PROMISE.search(path.read_text())]
    assert ON_AN_INDEX or [str(path.relative_to(ROOT)) for path in told] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$ pip install ixion", True),
        ('pip install "ixion[spark]"', True),
        ("pip install pytest ixion", True),
        ("pip install . pytest", False),
        ('pip install ".[spark]"', False),
        ("pip install ixion-0.2.0-py3-none-any.whl", False),
        ("pip install /home/me/ixion", False),
    ],
)
def test_what_counts_as_a_promise(text: str, found: bool) -> None:
    assert bool(PROMISE.search(text)) == found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_page_shows_this_version(document: Path) -> None:
    shown = re.findall(
        r"^ixion (\d\S*) ready|ixion-(\d[\w.]*)(?:-\S*\.whl|\.tar\.gz)", document.read_text(), re.MULTILINE
    )
    assert {version for versions in shown for version in versions if version} <= {__version__}


def test_the_picture_shows_this_version() -> None:
    picture = (ROOT / "docs" / "first-minute.svg").read_text().replace("&#160;", " ")
    assert re.findall(r"ixion (\d\S*) ready", picture) == [__version__]


def test_hints_install_what_the_extras_do() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    hint = shlex.split(NoSparkError().hint)
    assert hint[:2] == ["pip", "install"]
    assert [name.partition(">=14")[0] for name in extras["spark"]] == hint[2:]


def test_the_benchmark_that_the_page_shows_is_one() -> None:
    from benchmarks.framework import Benchmark

    (code,) = re.findall(r"^```python\n(.+?)^```", (ROOT / "benchmarks" / "README.md").read_text(), re.M | re.S)
    module: dict[str, object] = {}
    exec(code, module)  # imports, and defines
    assert isinstance(module["BENCHMARK"], Benchmark)


def test_the_changelog_has_this_version() -> None:
    assert re.search(
        rf"^## {re.escape(__version__)} \(\d{{4}}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
