"""A folder of pipelines: every .toml file in it is one, and `shared.toml` has their common settings.

A pipeline's own keys override those of `shared.toml`, key by key:

    shared.toml     [source] bootstrap = "kafka:9092"        [spark] conf = { … }
    orders.toml     [source] topics = ["orders"]
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from ixion.pipelines.errors import SpecError
from ixion.pipelines.spec.load import load_spec
from ixion.pipelines.spec.pipeline import PipelineSpec

SHARED: Final = "shared.toml"
_SHARABLE: Final = ("source", "format", "spark", "every")


def load_folder(folder: Path) -> list[PipelineSpec]:
    """The pipelines, sorted by file name. No two may have the same name or checkpoint: they run at the same time."""
    shared = _shared(folder / SHARED)
    specs = [load_spec(path, shared) for path in sorted(folder.glob("*.toml")) if path.name != SHARED]
    if not specs:
        raise SpecError(f"there is no pipeline in {folder}", hint="each is a file whose name ends in .toml")
    for what in ("name", "checkpoint"):
        seen: set[str] = set()
        for spec in specs:
            value = getattr(spec, what)
            if value in seen:
                raise SpecError(f"two pipelines in {folder} have the {what} {value}")
            seen.add(value)
    return specs


def _shared(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError(f"this is not TOML: {error}", where=path.name) from None
    for name, value in values.items():
        if name not in _SHARABLE or (name != "every" and not isinstance(value, dict)):
            hint = f"pipelines share {', '.join(_SHARABLE)}"
            raise SpecError(f"{name} cannot be shared", hint=hint, where=path.name)
    return values
