"""The schema registry of the records: `[format.registry]`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ixion.pipelines.spec.section import Section
from ixion.pipelines.spec.source import expanded


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySpec:
    url: str  # http(s)://…, or a folder
    subject: str | None = None  # None: TOPIC-value of the first topic
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)


def read_registry(section: Section, resolve: Callable[[str], str]) -> RegistrySpec | None:
    """SECTION is [format]."""
    registry = section.section("registry")
    if registry is None:
        return None
    registry.only("url", "subject", "user", "password", "token")
    secrets = expanded(section, "registry")  # ${NAME} is taken from the environment
    url = registry.text("url")
    return RegistrySpec(
        url=url if url.startswith(("http://", "https://")) else resolve(url.removeprefix("file://")),
        subject=registry.optional_text("subject"),
        user=secrets.get("user", ""),
        password=secrets.get("password", ""),
        token=secrets.get("token", ""),
    )
