"""The live page. None of these is Kafka's, which has no page."""

from __future__ import annotations

from typing import Final

from ixion.config.setting import Setting, optional_flag, optional_string, words

WEB_WRITE: Final[Setting[bool | None]] = optional_flag(
    "web.write",
    doc="whether the live page and its endpoints may change anything; default: true if only this machine can reach the"
    " broker and its page and no client has to log in, else false",
)
WEB_TLS_LISTENER: Final[Setting[str | None]] = optional_string(
    "web.tls.listener",
    doc="the listener with TLS whose certificate the live page and the metrics use for HTTPS; default: they use HTTP",
)
WEB_PIPELINES: Final[Setting[tuple[str, ...]]] = words(
    "web.pipelines",
    (),
    doc="folders on this machine whose pipelines the live page shows: checkpoints, or folders with checkpoints",
)
WEB_SCHEMA_REGISTRY_URL: Final[Setting[str | None]] = optional_string(
    "web.schema.registry.url",
    doc="a schema registry (Confluent's HTTP API) by which the live page shows records of Avro and JSON Schema",
)
