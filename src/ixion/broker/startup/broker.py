"""A broker: started in 27 steps, stopped in reverse.

broker = Broker(loaded)
await broker.start()          # StartupError: one line says why not, and nothing has changed
...
await broker.stop()
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion.broker.metadata.embedded import EmbeddedStore, unix_ms
from ixion.broker.metadata.errors import MetadataError, StoreUnusableError
from ixion.broker.metadata.on_loop import EmbeddedEngine
from ixion.broker.metadata.session import MetadataSession
from ixion.broker.network import BoundListener
from ixion.broker.startup import preflight
from ixion.broker.startup.errors import StartupError
from ixion.broker.startup.pages import bind_pages
from ixion.broker.startup.parts import Options, Parts
from ixion.broker.startup.private import make_private
from ixion.broker.startup.process import stall_watch_of
from ixion.broker.startup.steps import run_steps
from ixion.config.cluster_settings import (
    ZOOKEEPER_CONNECT,
    ZOOKEEPER_CONNECTION_TIMEOUT_MS,
    ZOOKEEPER_SESSION_TIMEOUT_MS,
    ZOOKEEPER_SET_ACL,
    ZOOKEEPER_SSL_CLIENT_ENABLE,
)
from ixion.config.dynamic import DynamicConfig
from ixion.config.errors import InvalidSettingError
from ixion.config.sources import Loaded
from ixion.timer.loop_timer import LoopTimer

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger(__name__)

# Parts that wait for disks or threads when they stop; the others stop on the loop.
BLOCKING: Final = frozenset({"logs", "work on logs", "moves under way", "scheduler", "metadata"})
SHARED_SESSION: Final = "session of the shared tree"
DRAIN_MS: Final = 5_000  # how long requests in flight may take when the broker stops


class Broker:
    def __init__(self, loaded: Loaded, options: Options | None = None) -> None:
        self._loaded = loaded
        self.parts = parts = Parts()
        parts.options = options or Options()
        self._made: list[str] = []  # directories and files that this start created
        self.failed = asyncio.Event()  # set when every disk or the metadata has failed: stop the broker
        self._session_over = asyncio.Event()

    @property
    def endpoints(self) -> tuple[BoundListener, ...]:
        return self.parts.server.endpoints

    async def start(self) -> None:
        parts = self.parts
        config = self._loaded.config
        for warning in (*self._loaded.warnings, *preflight.check(config, parts.options.allow_remote)):
            logger.warning("%s", warning)
        parts.loop = asyncio.get_running_loop()
        parts.stalls = stall_watch_of(parts.loop)
        parts.clock_ms = unix_ms
        parts.config = DynamicConfig(self._loaded.given)
        parts.paths = preflight.log_dirs(config)
        parts.on_fatal = self.failed.set
        no_pages = ""
        if parts.options.pages is not None:
            bound = bind_pages(parts.options.pages, parts.options.allow_remote)
            if isinstance(bound, str):
                no_pages = bound
            else:
                parts.web = bound
                parts.undo.append(("pages", bound.close))
        try:
            await self._open_metadata()
            await self._run_steps()
        except BaseException as error:
            await self._take_down(DRAIN_MS)
            if isinstance(error, StartupError):
                self._leave_no_trace()
            raise
        if no_pages:
            logger.warning("%s", no_pages)

    async def _run_steps(self) -> None:
        """StartupError if the session expires meanwhile: a step might then wait for requests that never come."""
        steps = asyncio.ensure_future(run_steps(self.parts))
        expired = asyncio.ensure_future(self._session_over.wait())
        try:
            await asyncio.wait([steps, expired], return_when=asyncio.FIRST_COMPLETED)
            if not steps.done():
                raise StartupError("the metadata session expired during the start")
        finally:
            for task in (steps, expired):
                task.cancel()
            await asyncio.wait([steps, expired])
        steps.result()

    async def _open_metadata(self) -> None:
        parts = self.parts
        for path in parts.paths:
            if not os.path.isdir(path):
                self._made.append(path)
                self._make_directory(path)
            else:
                make_private(path, 0o700)
        parts.timer = LoopTimer("broker", loop=parts.loop, stalls=parts.stalls)
        parts.undo.append(("timer", parts.timer.shutdown))
        connect = self._loaded.config[ZOOKEEPER_CONNECT]
        if parts.options.open_session is not None:
            await self._open_shared(parts.options.open_session)
        elif connect:
            await self._open_zookeeper(connect)
        else:
            self._open_embedded()
        parts.session.on_expired(self._expired)

    async def _open_zookeeper(self, connect: str) -> None:
        from ixion.broker.metadata.zookeeper.ensemble import InvalidConnectStringError
        from ixion.broker.metadata.zookeeper.session import open_session
        from ixion.broker.security.zookeeper_login import zookeeper_login

        parts = self.parts
        config = self._loaded.config
        timeout_ms = config[ZOOKEEPER_SESSION_TIMEOUT_MS]
        patience_ms = config[ZOOKEEPER_CONNECTION_TIMEOUT_MS]
        try:
            tls = self._zookeeper_tls()
            open_now = partial(
                open_session,
                connect,
                timeout_ms,
                connect_timeout_ms=patience_ms,
                tls=tls,
                login=zookeeper_login(config),
                secure=config[ZOOKEEPER_SET_ACL],
            )
            parts.session = await open_now()
        except (InvalidConnectStringError, InvalidSettingError, MetadataError, StoreUnusableError) as error:
            raise StartupError(str(error)) from error
        parts.open_session = open_now
        parts.undo.append(("ZooKeeper session", lambda: parts.session.close()))

    def _zookeeper_tls(self) -> Callable[[], ssl.SSLContext] | None:
        if not self._loaded.config[ZOOKEEPER_SSL_CLIENT_ENABLE]:
            return None
        from ixion.broker.security.zookeeper_tls import ZooKeeperTls

        return ZooKeeperTls(self._loaded.config).context

    async def _open_shared(self, open_session: Callable[[int], Awaitable[MetadataSession]]) -> None:
        parts = self.parts
        timeout_ms = self._loaded.config[ZOOKEEPER_SESSION_TIMEOUT_MS]
        parts.session = await open_session(timeout_ms)
        parts.open_session = lambda: open_session(timeout_ms)
        parts.undo.append((SHARED_SESSION, lambda: parts.session.close()))

    def _open_embedded(self) -> None:
        parts = self.parts
        file = parts.options.metadata_file
        if file is None:
            file = parts.metadata_file()
            if not os.path.exists(file):
                self._made.append(file)
            for each in (file, f"{file}-wal", f"{file}-shm"):
                make_private(each, 0o600)
        try:
            store = EmbeddedStore(file)
        except StoreUnusableError as error:
            raise StartupError(str(error)) from error
        parts.engine = EmbeddedEngine(store, parts.options.make_pool)
        parts.undo.append(("metadata", parts.engine.close))
        parts.session = parts.engine.open_session(self._loaded.config[ZOOKEEPER_SESSION_TIMEOUT_MS])

    def _expired(self) -> None:
        if self.parts.renewal is not None:
            self.parts.renewal.expired()
            return
        logger.critical("the metadata session expired, so this broker is no longer registered; it stops")
        self._session_over.set()
        self.failed.set()

    def _make_directory(self, path: str) -> None:
        try:
            self.parts.options.files.make_dir(path)
            self.parts.options.files.sync_dir(os.path.dirname(path))
        except OSError as error:
            raise StartupError(f"the log directory {path} cannot be made: {error.strerror}") from error

    async def stop(self, drain_ms: int = DRAIN_MS) -> None:
        """Stop cleanly: leaders move to other brokers or resign, so that waiting requests get NOT_LEADER_OR_FOLLOWER;
        then close everything."""
        begun = time.perf_counter()
        parts = self.parts
        if parts.to_controller is not None:
            from ixion.broker.startup.leaving import hand_over

            parts.doing = "moving leaders to other brokers"
            await hand_over(parts)
        for partition in list(parts.replicas.partitions.values()):
            partition.leads = False
            parts.replicas.wake_all(partition.key)
        await self._take_down(drain_ms)
        parts.stalls.report_rest()
        logger.info("stopped in %.0f ms", (time.perf_counter() - begun) * 1e3)

    async def abandon(self) -> None:
        """End as a killed process does: answer and write nothing more. For tests of the next start."""
        parts = self.parts
        # A session of a shared tree stays open, and expires some time later.
        instead: dict[str, Callable[[], object]] = {"logs": parts.logs.abandon, SHARED_SESSION: lambda: None}
        if parts.engine is not None:
            instead["metadata"] = parts.engine.abandon
        parts.undo[:] = [(name, instead.get(name, action)) for name, action in parts.undo]
        await self._take_down(0)

    async def _take_down(self, drain_ms: int) -> None:
        parts = self.parts
        pool = parts.options.make_pool(1, "stop")  # its own pool: the workers of the scheduler are stopped too
        while parts.undo:
            name, action = parts.undo.pop()
            parts.doing = f"stopping the {name}"
            try:
                if name == "socket server":
                    await parts.server.stop(drain_ms)
                elif name in BLOCKING:
                    await parts.loop.run_in_executor(pool, action)
                else:
                    done = action()
                    if inspect.isawaitable(done):
                        await done
            except Exception:
                logger.exception("stopping the %s failed; continuing", name)
        pool.shutdown(wait=False)

    def _leave_no_trace(self) -> None:
        """Remove what this start created, unless the controller has already created logs in it."""
        if getattr(self.parts, "logs", None) is not None and self.parts.logs.logs:
            return
        for path in self._made:
            if os.path.isfile(path):
                os.unlink(path)
            else:
                from shutil import rmtree

                rmtree(path, ignore_errors=True)
