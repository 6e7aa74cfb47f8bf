"""`meta.properties`: the broker and the cluster that a log directory belongs to.

Version 0 is for a ZooKeeper cluster (broker.id, cluster.id), version 1 for KRaft (node.id, cluster.id, directory.id).
Like Apache Kafka, we refuse a directory with other ids than ours.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.files import Files
from ixion.config.properties import parse_properties

FILE_NAME: Final = "meta.properties"


class MetaProperties(NamedTuple):
    version: int = 0
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None


def read_meta_properties(path: str) -> MetaProperties | None:
    try:
        with open(path, encoding="latin-1") as file:
            pairs = parse_properties(file.read())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise CorruptFileError(path, str(error)) from None
    version = _number(path, "version", pairs.get("version"))
    if version not in (0, 1):
        raise CorruptFileError(path, f"version {pairs.get('version')!r} is unknown")
    id_key = "broker.id" if version == 0 else "node.id"
    node_id = None if id_key not in pairs else _number(path, id_key, pairs[id_key])
    return MetaProperties(
        version=version, cluster_id=pairs.get("cluster.id"), node_id=node_id, directory_id=pairs.get("directory.id")
    )


def write_meta_properties(files: Files, path: str, meta: MetaProperties) -> None:
    pairs = {"version": str(meta.version)}
    if meta.cluster_id is not None:
        pairs["cluster.id"] = meta.cluster_id
    if meta.node_id is not None:
        pairs["broker.id" if meta.version == 0 else "node.id"] = str(meta.node_id)
    if meta.directory_id is not None:
        pairs["directory.id"] = meta.directory_id
    text = "#\n" + "".join(f"{key}={value}\n" for key, value in sorted(pairs.items()))
    files.replace_content(path, text.encode("latin-1"), True)


def _number(path: str, key: str, text: str | None) -> int:
    if text is None or not text.isascii() or not text.isdigit():
        raise CorruptFileError(path, f"{key} is {text!r}, not a whole number")
    return int(text)
