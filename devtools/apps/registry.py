"""Apicurio Registry with its `kafkasql` storage: a topic is its journal, read again at every start."""

from __future__ import annotations

import json
import os
import tarfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final

from devtools.apps.jvm_apps import service, until
from devtools.cache import made_once
from devtools.kafka import free_port
from devtools.programs import PartMissing

VERSION: Final = "3.0.9"  # the last that runs on Java 17
ARCHIVE: Final = f"https://repo1.maven.org/maven2/io/apicurio/apicurio-registry-app/{VERSION}/apicurio-registry-app-{VERSION}-all.tar.gz"
SCHEMA: Final = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}


def registry(bootstrap: str, folder: Path) -> None:
    """A schema is registered; after a restart, whose memory is empty, it is still there."""
    home = made_once("apicurio", VERSION, bring)
    artifact = {
        "artifactId": "order",
        "artifactType": "AVRO",
        "firstVersion": {"content": {"content": json.dumps(SCHEMA), "contentType": "application/json"}},
    }
    for life in ("first", "second"):
        port = free_port()
        address = f"http://127.0.0.1:{port}/apis/registry/v3/groups/default/artifacts"
        variables = {
            "APICURIO_STORAGE_KIND": "kafkasql",
            "APICURIO_KAFKASQL_BOOTSTRAP_SERVERS": bootstrap,
            "QUARKUS_HTTP_HOST": "127.0.0.1",
            "QUARKUS_HTTP_PORT": str(port),
        }
        place = folder / life
        place.mkdir()
        classpath = str(home / f"apicurio-registry-app-{VERSION}-runner.jar")
        main = "io.quarkus.runner.GeneratedMain"
        with service(main, classpath=classpath, folder=place, environment={**os.environ, **variables}) as check:
            until(lambda at=port: is_ready(at), check)  # type: ignore[misc]
            if life == "first":
                ask(address, artifact)
            found = ask(f"{address}/order/versions/branch=latest/content")
            if found != SCHEMA:
                raise RuntimeError(f"another schema came back in its {life} life: {found}")


def is_ready(port: int) -> bool:
    try:
        return bool(ask(f"http://127.0.0.1:{port}/health/ready")["status"] == "UP")
    except (OSError, ValueError):
        return False


def ask(address: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def bring(target: Path) -> None:
    try:
        archive, _ = urllib.request.urlretrieve(ARCHIVE, target / "archive.tar.gz")
    except urllib.error.URLError as error:
        raise PartMissing(f"{ARCHIVE}: {error.reason}") from None
    with tarfile.open(archive) as tar:
        tar.extractall(target, filter="data")
    Path(archive).unlink()
