"""axe-core, which finds what makes a page hard to use with a screen reader, a keyboard or weak eyes.

It is fetched from the npm registry by name and compared with the hash below; only tests use it.

    source = axe()                                   # JavaScript that defines `axe`
    found = barriers(page, source)                   # ["color-contrast (serious): .dim ...", ...]
"""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

from devtools.browser import Page
from devtools.cache import made_once
from devtools.programs import PartMissing

VERSION: Final = "4.14.0"
INTEGRITY: Final = "9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
MINOR: Final = ("minor", "moderate")


def axe() -> str:
    """PartMissing if it cannot be had."""
    return (made_once("npm", f"axe-core-{VERSION}", fetch) / "axe.min.js").read_text("utf-8")


def fetch(folder: Path) -> None:
    address = f"https://registry.npmjs.org/axe-core/-/axe-core-{VERSION}.tgz"
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            archive = answer.read()
    except (urllib.error.URLError, TimeoutError) as error:
        raise PartMissing(f"axe-core cannot be fetched: {error}") from None
    if base64.b64encode(hashlib.sha512(archive).digest()).decode() != INTEGRITY:
        raise PartMissing(f"{address} is not the file that it was")
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        member = packed.extractfile("package/axe.min.js")
        assert member is not None
        (folder / "axe.min.js").write_bytes(member.read())


def barriers(page: Page, source: str) -> list[str]:
    """What is serious or critical on the page as it is, with the first elements of each."""
    page.look(f"if (!window.axe) {{ {source} }}; true")
    found = page.look(
        "axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations.map((each) => ["
        "each.id, each.impact, each.nodes.slice(0, 3).map((node) => node.html.slice(0, 150))]))"
    )
    return [f"{name} ({impact}): {nodes}" for name, impact, nodes in found if impact not in MINOR]
