"""`ixion cluster tree`: a metadata tree in this process, until a signal stops it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from ixion.broker.metadata.embedded import FILE_NAME, EmbeddedStore
from ixion.broker.metadata.errors import StoreUnusableError
from ixion.broker.metadata.zookeeper.server import HOST, serve_tree
from ixion.broker.startup.logs import configure_logs
from ixion.cli.cluster.process import failure


def serve(port: int, directory: str) -> None:
    configure_logs(sys.stderr, "info", "text")
    os.makedirs(directory, exist_ok=True)
    try:
        asyncio.run(serve_until_stopped(port, directory))
    except StoreUnusableError as error:
        raise failure(str(error)) from None


async def serve_until_stopped(port: int, directory: str) -> None:
    store = EmbeddedStore(os.path.join(directory, FILE_NAME))
    try:
        server = await serve_tree(store, port)
    except OSError as error:
        store.close()
        raise failure(f"port {port} cannot be used: {error.strerror}; choose another with --port") from None
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    print(f"metadata tree ready on {HOST}:{server.port}, data in {directory}", flush=True)
    await stop.wait()
    await server.close()
