"""`ixion serve`: a broker in this process, until a signal stops it.

It prints a line on standard output when it is ready, and one that names the next step; the log goes to standard error.
If it cannot start, it prints one line there and exits with 1, and nothing on the disk has changed.

SIGTERM, SIGINT and SIGHUP stop it cleanly: leaders resign, requests in flight are answered, logs are closed. A second
signal ends it at once; the next start then recovers the logs. The same happens if stopping takes longer than
`STOP_SECONDS`.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Final, NoReturn

from ixion import __version__
from ixion.broker.startup.logs import configure_logs
from ixion.broker.startup.pages import PagesAt
from ixion.broker.startup.process import age_seconds, loop_factory, raise_file_limit
from ixion.cli.access import HERE
from ixion.cli.command import UsageError
from ixion.cli.serve.commands import Chosen
from ixion.config.errors import InvalidSettingError
from ixion.config.listeners import listeners
from ixion.config.sources import Loaded, exposed, load

if TYPE_CHECKING:
    from ixion.broker.startup.broker import Broker

STOP_SECONDS: Final = 25  # container runtimes usually wait 30 before they kill
SHORTHANDS: Final = (("port", "listeners", "PLAINTEXT://127.0.0.1:{}"), ("data", "log.dirs", "{}"))

logger = logging.getLogger(__name__)


def main(words: list[str]) -> int:
    """`ixion serve` with these words; the exit code."""
    from ixion.cli.app import execute

    return execute(["serve", *words])


def start(chosen: Chosen) -> int:
    """Serve until a signal stops the broker; the exit code."""
    for option, name, _ in SHORTHANDS:
        if getattr(chosen, option) is not None and any(each.startswith(f"{name}=") for each in chosen.assignments):
            raise UsageError(f"--{option} is short for --set {name}=…; give one of the two")
    gc.disable()  # until the broker has started: collections would take 25 ms and free nothing
    configure_logs(sys.stderr, chosen.log_level, chosen.log_format)
    raise_file_limit()
    try:
        loaded = load(file=chosen.config, environment=os.environ, assignments=assignments(chosen))
    except InvalidSettingError as error:
        return refuse(error)
    loaded = loaded._replace(warnings=(*loaded.warnings, *exposed(chosen.assignments)))
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(serve(loaded, chosen))
    except KeyboardInterrupt:
        return 130


def assignments(chosen: Chosen) -> list[str]:
    given = [(name, form, getattr(chosen, option)) for option, name, form in SHORTHANDS]
    return [*(f"{name}={form.format(value)}" for name, form, value in given if value is not None), *chosen.assignments]


def pages_at(chosen: Chosen) -> PagesAt | None:
    if chosen.metrics_port is None:
        return PagesAt()
    if chosen.metrics_port == "off":
        return None
    host, port = chosen.metrics_port
    return PagesAt(host, port, required=True)


async def serve(loaded: Loaded, chosen: Chosen) -> int:
    from ixion.broker.startup.broker import Broker
    from ixion.broker.startup.errors import StartupError
    from ixion.broker.startup.parts import Options

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP
            loop.add_signal_handler(number, on_signal, number, stop)
    broker = Broker(loaded, Options(allow_remote=chosen.allow_remote, owns_process=True, pages=pages_at(chosen)))
    try:
        if not await start_unless(stop, broker.start()):
            return 0
    except (StartupError, InvalidSettingError) as error:
        return refuse(error)
    gc.enable()
    announce(broker, chosen.quiet)
    await first_of(stop, broker.failed)
    loop.call_later(STOP_SECONDS, too_slow)
    await broker.stop()
    if broker.failed.is_set():
        return refuse("stopped, because every log directory or the metadata has failed; the log says which and why")
    return 0


async def start_unless(stop: asyncio.Event, start: Coroutine[object, object, None]) -> bool:
    """True if it was started; False if a signal came meanwhile, and it was stopped again."""
    starting = asyncio.create_task(start)
    told = asyncio.create_task(stop.wait())
    await asyncio.wait((starting, told), return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if not starting.done():
        asyncio.get_running_loop().call_later(STOP_SECONDS, too_slow)
        starting.cancel()
        await asyncio.wait((starting,))
    if starting.cancelled():
        return False
    starting.result()
    return True


async def first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


def announce(broker: Broker, quiet: bool) -> None:
    addresses = ", ".join(f"{endpoint.host or '*'}:{endpoint.port}" for endpoint in broker.endpoints)
    data = ", ".join(short_path(path) for path in broker.parts.paths)
    age_ms = age_seconds() * 1e3
    web = broker.parts.web
    pages = web.url if web is not None else "off"
    logger.info("ready", extra={"addresses": addresses, "data": data, "pages": pages, "after_ms": round(age_ms)})
    if not quiet:
        try:
            ready = f"ixion {__version__} ready on {addresses} in {age_ms:.0f} ms, data in {data}\n"
            print(ready + next_step(broker), end="", flush=True)  # one write: a reader gets both lines at once
        except OSError:
            pass  # the reader of our output is gone; the broker serves its clients anyway


def next_step(broker: Broker) -> str:
    """A line with a command to try, if the first listener asks for no credentials, and the address of the pages."""
    parts = broker.parts
    steps = [f"pages at {parts.web.url}"] if parts.web is not None else []
    if listeners(parts.config.current).bound[0].protocol == "PLAINTEXT":
        _, host, port = broker.endpoints[0]
        address = f"{f'[{host}]' if ':' in host else host or '127.0.0.1'}:{port}"
        elsewhere = "" if address == HERE else f" -b {address}"
        steps.insert(0, f"try: echo hello | ixion produce greetings{elsewhere}")
    return "; ".join(steps) + "\n" if steps else ""


def short_path(path: str) -> str:
    """Relative to the working directory, if it is below it."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else os.path.join(".", relative)


def on_signal(number: int, stop: asyncio.Event) -> None:
    if stop.is_set():
        leave_now("a second signal to stop", 128 + number)
    stop.set()


def too_slow() -> None:
    leave_now(f"not stopped after {STOP_SECONDS} s", 1)


def leave_now(why: str, code: int) -> NoReturn:
    logger.warning("%s: ending at once; the next start recovers the logs", why)
    os._exit(code)


def refuse(error: Exception | str) -> int:
    print(f"ixion serve: {error}", file=sys.stderr, flush=True)
    return 1
