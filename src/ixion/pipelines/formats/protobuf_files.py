"""From .proto files to descriptor sets, which decoders read.

A descriptor set holds a file and all files that it imports, each after those that it needs. So the last one is the file
that was asked for. In a plan and in the checkpoint a set is text: DESCRIPTORS and base64.
"""

from __future__ import annotations

import base64
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.registry import Registered, Registry
from ixion.pipelines.spec.format import DESCRIPTORS

NEEDS: Final = "pip install protobuf grpcio-tools"
_MAIN: Final = "ixion_main.proto"
_TIMEOUT_S: Final = 60.0
_DEEPEST: Final = 50  # references of references


def as_text(descriptors: bytes) -> str:
    return DESCRIPTORS + base64.b64encode(descriptors).decode("ascii")


def as_bytes(text: str) -> bytes:
    """TEXT is from `as_text`, or a .proto file."""
    if not text.startswith(DESCRIPTORS):
        text = compile_proto(text)
    return base64.b64decode(text.removeprefix(DESCRIPTORS))


def compile_proto(text: str, imported: Mapping[str, str] | None = None) -> str:
    """The descriptor set of the .proto file TEXT; IMPORTED are the files that it imports, by their names."""
    return _compile(text, tuple(sorted((imported or {}).items())))


def compile_registered(registry: Registry, one: Registered) -> str:
    """The descriptor set of a registered schema, with all schemas that it refers to."""
    return compile_proto(one.schema, dict(_references(registry, one, _DEEPEST)))


def _references(registry: Registry, one: Registered, depth: int) -> Iterator[tuple[str, str]]:
    if not depth:
        raise PipelineError("the registered Protobuf schemas refer to each other without end")
    for name, subject, version in one.references:
        found = registry.version(subject, version)
        if found is None:
            raise PipelineError(f"the schema registry has no version {version} of subject {subject}, which is imported")
        yield name, found.schema
        yield from _references(registry, found, depth - 1)


@lru_cache(maxsize=256)
def _compile(text: str, imported: tuple[tuple[str, str], ...]) -> str:
    found = importlib.util.find_spec("grpc_tools")
    if found is None or found.origin is None:
        raise PipelineError("the compiler for .proto files is not installed", hint=NEEDS)
    with tempfile.TemporaryDirectory(prefix="ixion-proto-") as name:
        folder = Path(name)
        for path, content in (*imported, (_MAIN, text)):
            target = folder / path
            if ".." in target.parts or not target.is_relative_to(folder):
                raise PipelineError(f"the Protobuf schema imports {path!r}, which is no name of a file")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, "utf-8")
        out = folder / "ixion.descriptors"
        paths = [f"--proto_path={folder}", f"--proto_path={Path(found.origin).parent / '_proto'}"]
        words = [sys.executable, "-m", "grpc_tools.protoc", *paths, "--include_imports", f"--descriptor_set_out={out}"]
        done = subprocess.run(  # noqa: S603 - our own Python, and names of files that we made
            [*words, _MAIN], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        if done.returncode:
            raise PipelineError(
                f"the Protobuf schema cannot be used: {_first_error(done.stderr.replace(f'{folder}/', ''))}"
            )
        return as_text(out.read_bytes())


def _first_error(said: str) -> str:
    """protoc puts the place first: ixion_main.proto:3:1: "Strin" is not defined."""
    lines = [line for line in said.splitlines() if line and "warning" not in line]
    first = lines[0] if lines else "protoc gave no reason"
    return re.sub(
        rf"^{re.escape(_MAIN)}:(?:(\d+):\d+: )?", lambda found: f"line {found[1]}: " if found[1] else "", first
    )
