"""The options of `df.write.format("ixion")` and `df.writeStream.format("ixion")`: names as Spark's Kafka connector has
them, and those of Delta for a write of one's own that may be repeated (`txnAppId`, `txnVersion`).
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from ixion.spark.options import SECURITY, read_security_options, read_switch

BATCHES_TOPIC: Final = "ixion-batches"
TRANSACTION_MS: Final = 900_000  # Kafka's default for transaction.max.timeout.ms
MAX_RECORD_BYTES: Final = 1024 * 1024

KAFKAS: Final = (
    "kafka.bootstrap.servers",
    "kafka.client.id",
    "kafka.compression.type",
    "kafka.max.request.size",
    "kafka.transaction.timeout.ms",
)
OWN: Final = (
    *("topic", "includeHeaders", "delivery", "batchesTopic", "firstBatch", "repeatedBatch", "timeoutSeconds"),
    *("txnAppId", "txnVersion"),
)
SPARKS: Final = ("checkpointLocation", "queryName", "path")  # Spark passes its own options on, too
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


class SinkOptions(NamedTuple):
    bootstrap: str
    client: dict[str, Any]  # settings of every client: its id and its security
    topic: str  # "": each row names its own
    exactly_once: bool
    batches_topic: str
    first_batch: int | None  # the batch that may be the first one that this topic of batches knows
    skips_other_rows: bool  # a repeated batch may have other rows than the one that was written
    app: str  # txnAppId; "": this write is not repeated
    version: int
    compression: str
    max_record_bytes: int
    transaction_ms: int
    timeout_s: float


def read_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """ValueError for options that are misspelt, contradictory or unsupported. Names ignore case."""
    known = {name.lower(): name for name in (*KAFKAS, *OWN, *SPARKS, *SECURITY)}
    found: dict[str, str] = {}
    for name, value in given.items():
        if name.lower() not in known:
            near = get_close_matches(name.lower(), known, n=1)
            hint = f"; did you mean {known[near[0]]}?" if near else ""
            raise ValueError(f"writing with format('ixion') has no option {name}{hint}")
        found[known[name.lower()]] = value
    if "kafka.bootstrap.servers" not in found:
        raise ValueError("the option kafka.bootstrap.servers is missing")
    if ("txnAppId" in found) != ("txnVersion" in found):
        raise ValueError("txnAppId and txnVersion need each other: the name of a writer, and the number of its write")
    read_switch(found, "includeHeaders", True)  # as for the connector: a column named headers is written
    client = {**read_security_options(found), "client_id": found.get("kafka.client.id", "ixion-spark")}
    return SinkOptions(
        bootstrap=found["kafka.bootstrap.servers"],
        client=client,
        topic=found.get("topic", "").strip(),
        exactly_once=choice(found, "delivery", ("exactly-once", "at-least-once")) == "exactly-once",
        batches_topic=found.get("batchesTopic", BATCHES_TOPIC),
        first_batch=number(found, "firstBatch", 0) if "firstBatch" in found else None,
        skips_other_rows=choice(found, "repeatedBatch", ("compare", "skip")) == "skip",
        app=found.get("txnAppId", ""),
        version=number(found, "txnVersion", 0),
        compression=choice(found, "kafka.compression.type", CODECS),
        max_record_bytes=number(found, "kafka.max.request.size", MAX_RECORD_BYTES) or MAX_RECORD_BYTES,
        transaction_ms=number(found, "kafka.transaction.timeout.ms", TRANSACTION_MS) or TRANSACTION_MS,
        timeout_s=float(number(found, "timeoutSeconds", 60) or 60),
    )


def choice(found: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    """The value of an option; the first that is allowed if it is not given."""
    text = found.get(name, allowed[0]).strip().lower()
    if text not in allowed:
        raise ValueError(f"{name} is {found[name]!r}; allowed are {', '.join(allowed)}")
    return text


def number(found: Mapping[str, str], name: str, default: int) -> int:
    text = found.get(name, str(default)).strip()
    if not text.isdecimal() or not text.isascii():
        raise ValueError(f"{name} is a whole number from 0 on, not {text!r}")
    return int(text)
