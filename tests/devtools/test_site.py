"""`make site`: links of a page lead to the right place of the site, and every page is in the menu."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from devtools.site import MOVED, ROOT, place_of, relinked


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("README.md", "[a](docs/cli.md#produce)", "[a](cli.md#produce)"),
        ("README.md", "![p](docs/bench/delay.svg)", "![p](bench/delay.svg)"),
        ("README.md", "[wheel](src/ixion/timer/wheel.py)", "wheel"),
        ("docs/cli.md", "[up](../README.md)", "[up](index.md)"),
        ("docs/bench/README.md", "[b](../../benchmarks/README.md)", "[b](../benchmarks.md)"),
        ("benchmarks/README.md", "[s](../docs/scale.md)", "[s](scale.md)"),
        (
            "docs/cli.md",
            "[here](#topics) [k](https://kafka.apache.org/)",
            "[here](#topics) [k](https://kafka.apache.org/)",
        ),
        ("README.md", "```python test\nx = 1\n```", "```python\nx = 1\n```"),
        ("README.md", "```\n[code](docs/cli.md)\n```", "```\n[code](docs/cli.md)\n```"),
    ],
)
def test_links(source: str, text: str, expected: str) -> None:
    assert relinked(text, source) == expected


def test_a_source_file_is_linked_where_the_repository_is_known() -> None:
    text = relinked("[wheel](src/ixion/timer/wheel.py)", "README.md", "https://example.org/ixion")
    assert text == "[wheel](https://example.org/ixion/blob/main/src/ixion/timer/wheel.py)"


def test_every_page_is_in_the_menu() -> None:
    listed = set(re.findall(r"^ +- [^:]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    pages = {str(place_of(str(path.relative_to(ROOT)))) for path in Path(ROOT / "docs").rglob("*.md")}
    assert listed == pages | set(MOVED.values())
