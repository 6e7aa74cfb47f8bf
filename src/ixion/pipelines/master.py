"""Where Spark is to run: `--master`. A cluster that does not answer is told at once; Spark would try for a minute."""

from __future__ import annotations

import re
import socket
from typing import Final

from ixion.pipelines.errors import PipelineError

TIMEOUT_S: Final = 3.0


def need_master(master: str) -> None:
    """Fails if MASTER is nothing that Spark knows, or if nobody listens at any address of a standalone cluster."""
    if re.fullmatch(r"local(\[[\w*, ]+\])?|yarn|k8s://.+", master):
        return
    found = re.fullmatch(r"spark://([\w.-]+:\d+(?:,[\w.-]+:\d+)*)", master)
    if found is None:
        hint = "allowed: local[*], spark://host:7077, yarn, k8s://https://host:port"
        raise PipelineError(f"the master {master!r} is nothing that Spark knows", hint=hint)
    said = ""
    for address in found[1].split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), TIMEOUT_S).close()
            return
        except OSError as error:
            said = error.strerror or str(error)
    hint = "is the cluster running? Without --master, Spark runs on this machine"
    raise PipelineError(f"no Spark master answers at {master}: {said}", hint=hint, retry=True)
