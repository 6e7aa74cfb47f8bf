"""`make site`: the documents as a site in build/site, which can be published as it is.

Most pages are in docs/. Those of the root get their place in it, and links between pages follow. A link to a source
file becomes plain text, because the site has no sources; with IXION_REPOSITORY=https://… it leads to the repository.
mkdocs then checks every link (mkdocs.yml: strict).
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = ROOT / "build" / "pages"
# Of the repository -> of the site.
MOVED: Final = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
}
LINK: Final = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def place_of(path: str) -> str | None:
    """Where a file of the repository is on the site; None if it is not there."""
    if path in MOVED:
        return MOVED[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def relinked(text: str, source: str, repository: str = "") -> str:
    """The text of a page of the repository with its links as the site needs them."""
    place = place_of(source)
    assert place is not None

    def change(found: re.Match[str]) -> str:
        picture, label, link = found.groups()
        path, _, anchor = link.partition("#")
        if "://" in link or not path:
            return found[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        there = place_of(target)
        if there is not None:
            new = posixpath.relpath(there, posixpath.dirname(place) or ".")
            return f"{picture}[{label}]({new}{'#' if anchor else ''}{anchor})"
        return f"[{label}]({repository}/blob/main/{target})" if repository else label

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(plain_fence(part) if part.startswith("```") else LINK.sub(change, part) for part in parts)


def plain_fence(block: str) -> str:
    """A block whose first line names its language only: ```python test is for devtools/first_hour."""
    return re.sub(r"^```(\w+) .*$", r"```\1", block, count=1, flags=re.MULTILINE)


def collect(repository: str = "") -> None:
    shutil.rmtree(PAGES, ignore_errors=True)
    for path in (ROOT / "docs").rglob("*"):
        if path.is_file() and path.suffix != ".md":
            copy = PAGES / path.relative_to(ROOT / "docs")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    pages = [*MOVED, *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
    for name in pages:
        page = PAGES / str(place_of(name))
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(relinked((ROOT / name).read_text(), name, repository))


def main() -> None:
    collect(os.environ.get("IXION_REPOSITORY", "").rstrip("/"))
    command = [str(Path(sys.executable).with_name("mkdocs")), "build", "--quiet", "--config-file", "mkdocs.yml"]
    # The variable silences an announcement of the theme's authors.
    sys.exit(subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}).returncode)


if __name__ == "__main__":
    main()
