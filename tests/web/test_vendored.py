"""What the live page brings along of others is what its maker has published."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

import pytest

from devtools.parts import do_without
from ixion.broker.web.console.files import FOLDER

OURS = {".css", ".js", ".svg"}


class Vendored(NamedTuple):
    package: str  # of the npm registry
    version: str
    integrity: str  # of its archive, as the registry states it
    files: dict[str, str]  # ours by theirs


VENDORED = (
    Vendored(
        "@fontsource-variable/jetbrains-mono",  # JetBrains Mono, SIL Open Font License 1.1
        "5.3.0",
        "sha512-F32xpS2NsGYoQi2ADSkKTgpJj7ozajsGgDJ8woTnqjmIB+dxDIqImjl4pXZVEExu8UFZ2ndhmX18EBS/hdz3Lw==",
        {
            "package/files/jetbrains-mono-latin-wght-normal.woff2": "jetbrains-mono-latin-wght-normal.woff2",
            "package/LICENSE": "jetbrains-mono.LICENSE",
        },
    ),
)


def test_every_file_is_ours_or_named_here() -> None:
    named = {name for each in VENDORED for name in each.files.values()}
    assert {path.name for path in FOLDER.iterdir() if path.suffix not in OURS} == named


@pytest.mark.parametrize("each", VENDORED, ids=lambda each: each.package)
def test_it_is_the_file_of_the_registry(each: Vendored) -> None:
    name = each.package.rpartition("/")[2]
    address = f"https://registry.npmjs.org/{each.package}/-/{name}-{each.version}.tgz"
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            archive = answer.read()
    except (urllib.error.URLError, TimeoutError) as error:
        do_without("the npm registry", str(error))
    assert f"sha512-{base64.b64encode(hashlib.sha512(archive).digest()).decode()}" == each.integrity
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        for theirs, ours in each.files.items():
            member = packed.extractfile(theirs)
            assert member is not None
            assert member.read() == Path(FOLDER / ours).read_bytes()
