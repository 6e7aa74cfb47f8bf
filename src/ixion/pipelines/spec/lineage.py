"""The target of OpenLineage events: `[lineage]`, or the environment variables of OpenLineage's own clients."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from ixion.pipelines.spec.section import Section
from ixion.pipelines.spec.source import expanded


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageSpec:
    url: str = ""  # http(s)://…
    endpoint: str = "api/v1/lineage"
    file: str = ""  # instead of a url: a file with one event per line
    namespace: str = "ixion"  # of the job
    api_key: str = field(default="", repr=False)


def read_lineage(section: Section | None, root: Section, resolve: Callable[[str], str]) -> LineageSpec | None:
    """None: no events are sent."""
    namespace = os.environ.get("OPENLINEAGE_NAMESPACE", "ixion")
    if section is None:
        server = os.environ.get("OPENLINEAGE_URL", "")
        if not server or os.environ.get("OPENLINEAGE_DISABLED", "").lower() == "true":
            return None
        key = os.environ.get("OPENLINEAGE_API_KEY", "")
        endpoint = os.environ.get("OPENLINEAGE_ENDPOINT", "api/v1/lineage")
        return LineageSpec(url=server, endpoint=endpoint.strip("/"), namespace=namespace, api_key=key)
    section.only("url", "endpoint", "file", "namespace", "api_key")
    values = expanded(root, "lineage")  # ${NAME} is taken from the environment
    url, file = section.optional_text("url"), section.optional_text("file")
    if (url is None) == (file is None):
        section.fail("[lineage] needs either a url or a file")
    if url is not None and not values["url"].startswith(("http://", "https://")):
        section.fail(f"{section.label('url')} is {url!r}; it must begin with http:// or https://", "url")
    return LineageSpec(
        url=values.get("url", ""),
        endpoint=section.text("endpoint", "api/v1/lineage").strip("/"),
        file=resolve(values["file"]) if file else "",
        namespace=section.text("namespace", namespace),
        api_key=values.get("api_key", ""),
    )
