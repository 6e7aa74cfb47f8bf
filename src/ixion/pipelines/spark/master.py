"""Where Spark runs: `--master`. A cluster that does not answer is an error at once; Spark would try for a minute."""

from __future__ import annotations

import re
from typing import Final

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.source.reachable import connect

# Threads here; processes here (workers, cores and megabytes of each); clusters that Spark finds by other means.
_TAKEN_AS_IT_IS: Final = r"local(\[[\w*, ]+\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]|yarn|k8s://.+"
_ADDRESS: Final = r"(?:[\w.-]+|\[[\da-fA-F:.]+\]):\d+"


def is_one_process(master: str) -> bool:
    """Whether driver and executors are one JVM."""
    return re.fullmatch(r"local(\[[^\]]*\])?", master) is not None


def need_master(master: str) -> None:
    """PipelineError if Spark does not know MASTER, or no address of a standalone cluster accepts a connection."""
    if re.fullmatch(_TAKEN_AS_IT_IS, master):
        return
    found = re.fullmatch(rf"spark://({_ADDRESS}(?:,{_ADDRESS})*)", master)
    if found is None:
        hint = "allowed: local[*], local-cluster[2,1,1024], spark://host:7077, yarn, k8s://https://host:port"
        raise PipelineError(f"Spark does not know the master {master!r}", hint=hint)
    try:
        connect(found[1].split(",")).close()
    except ConnectionError as error:
        hint = "is the cluster running? Without --master, Spark runs on this machine"
        raise PipelineError(f"no Spark master answers at {master}: {error}", hint=hint, retry=True) from None
