"""Whether anybody listens at the broker's address, asked before Spark is started: that takes seconds."""

from __future__ import annotations

import socket

from ixion.pipelines.errors import PipelineError


def need_reachable(bootstrap: str, timeout_s: float = 3.0) -> None:
    """Fails if nobody listens at any of the addresses."""
    said = ""
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdigit():
            raise PipelineError(f"the broker's address {address.strip()!r} is not host:port")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
            return
        except OSError as error:
            said = error.strerror or str(error)
    raise unreachable(bootstrap, said)


def unreachable(bootstrap: str, said: str) -> PipelineError:
    hint = "is it running (ixion serve), and is source.bootstrap its address?"
    return PipelineError(f"no broker answers at {bootstrap}: {said}", hint=hint, retry=True)
