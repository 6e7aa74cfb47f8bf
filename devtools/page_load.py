"""What the live page costs: a broker with many partitions, groups and delayed records, and the pages that are open.

    python -m devtools.page_load                 10,000 partitions, 1,000 groups, 1,000,000 delayed records, 50 pages
    python -m devtools.page_load --partitions 1000 --groups 100 --delayed 10000 --seconds 5

It prints the page docs/bench/page.md. The broker is a process of its own. Pages are what a browser asks of it: the HTML
of a view again and again at the pace of the view, and the stream of the wheel. A turn is one callback of the broker's
loop, measured in processor time, so that a busy machine does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import nlargest
from typing import IO, Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

from confluent_kafka import Producer

from ixion.cli.main import build_kind
from ixion.clients import Admin, NewTopic
from ixion.clients.metadata import TopicPartition
from ixion.testing import Broker
from ixion.timer.stall_watch import StallWatch

IN_TOPIC: Final = 100
WEEK_MS: Final = 7 * 24 * 3600 * 1000
LONG_NS: Final = 5_000_000


class View(NamedTuple):
    path: str
    every_s: float  # 0: a stream


# What fifty people look at: each view, the wheel most of all.
VIEWS: Final = (
    *(View("/api/v1/wheel/events", 0), View("/", 5), View("/topics", 5), View("/groups", 3), View("/schedules", 2)),
    *(View("/api/v1/wheel/events", 0), View("/purgatories", 2), View("/topics/load-00", 3), View("/connections", 2)),
    *(View("/brokers", 5),),
)


class Turns:
    """The longest turns of the loop, and how many were longer than `LONG_NS`."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.count = self.long = 0
        self.longest: list[tuple[int, str]] = []

    def watch(self) -> None:
        """Every callback of the loop runs under a `StallWatch`. Its class is compiled in a compiled broker, which then
        cannot be measured so."""
        run = StallWatch.run
        clock = time.thread_time_ns

        def measured(watch: StallWatch, callback: Callable[..., Any], *args: Any) -> None:
            began = clock()
            run(watch, callback, *args)
            took = clock() - began
            self.count += 1
            if took > LONG_NS:
                self.long += 1
                self.longest = nlargest(5, [*self.longest, (took, name_of(callback))])

        StallWatch.run = measured  # type: ignore[method-assign, assignment]


def name_of(callback: Callable[..., Any]) -> str:
    task = getattr(callback, "__self__", None)
    what: Any = task.get_coro() if isinstance(task, asyncio.Task) else callback
    return str(getattr(what, "__qualname__", what))[:100]


def serve() -> None:
    """The broker's process: it answers each line on its standard input with its figures since the line before."""
    if build_kind() == "compiled":
        raise SystemExit("turns can be measured in an interpreted broker only: run this in a tree that is not compiled")
    turns = Turns()
    turns.watch()
    settings = {"auto.create.topics.enable": False}
    with Broker(settings, metrics=True, memory=True) as broker:
        print(json.dumps([broker.bootstrap, broker.metrics_url.removesuffix("/metrics")]), flush=True)
        used_s, at_s = time.process_time(), time.monotonic()
        for _ in sys.stdin:
            now_s = time.monotonic()
            share = 100 * (time.process_time() - used_s) / (now_s - at_s)
            print(json.dumps([share, turns.count, turns.long, turns.longest]), flush=True)
            turns.reset()
            used_s, at_s = time.process_time(), time.monotonic()


class Figures(NamedTuple):
    share: float  # of a core
    turns: int
    long: int
    longest: list[tuple[int, str]]


class Server:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._in = cast(IO[str], process.stdin)
        self._out = cast(IO[str], process.stdout)
        self.bootstrap, self.url = json.loads(self._out.readline())

    def figures(self) -> Figures:
        """Since the last call."""
        self._in.write("now\n")
        self._in.flush()
        return Figures(*json.loads(self._out.readline()))


@contextmanager
def server() -> Iterator[Server]:
    process = subprocess.Popen(
        [sys.executable, "-m", "devtools.page_load", "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Server(process)
    finally:
        cast(IO[str], process.stdin).close()
        process.wait(60)


def fill(bootstrap: str, partitions: int, groups: int, delayed: int) -> None:
    with Admin(bootstrap) as admin:
        topics = [NewTopic(f"load-{number:02}", IN_TOPIC) for number in range(partitions // IN_TOPIC - 1)]
        for topic in topics:
            admin.create_topics([topic]).check()
        admin.create_topics([NewTopic("jobs", IN_TOPIC, configs={"delivery.delay.mode": "record"})]).check()
        say(f"{partitions:,} partitions")
        for number in range(groups):
            offsets = {TopicPartition(f"load-{number % len(topics):02}", each): 0 for each in range(10)}
            admin.alter_group_offsets(f"group-{number}", offsets).check()
        say(f"{groups:,} groups")
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 200_000})
    for number in range(delayed):
        after = str(random.randint(600_000, WEEK_MS))
        while True:
            try:
                producer.produce("jobs", b"remind", str(number), headers=[("x-deliver-after-ms", after)])
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(600) == 0
    say(f"{delayed:,} delayed records")


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr)


class Pages:
    """Open pages, on a loop of their own in a thread."""

    def __init__(self, url: str, views: list[View]) -> None:
        address = urlsplit(url)
        self._host, self._port = address.hostname or "", address.port or 0
        self._views = views
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self.answers = 0
        self.refused: list[str] = []  # and those that ended

    def __enter__(self) -> Pages:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        tasks = [self._loop.create_task(self._open(view)) for view in self._views]
        self._loop.run_forever()
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks))
        self._loop.close()

    async def _open(self, view: View) -> None:
        try:
            await self._look(view)
        except (OSError, EOFError) as error:
            self.refused.append(f"{view.path}: {type(error).__name__}")

    async def _look(self, view: View) -> None:
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=1 << 22)
        accept = "text/html" if view.every_s else "text/event-stream"
        asked = f"GET {view.path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n".encode()
        await asyncio.sleep(random.random() * (view.every_s or 1))
        try:
            while True:
                writer.write(asked)
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                if not head.startswith("HTTP/1.1 200"):
                    self.refused.append(f"{view.path}: {head.split()[1]}")
                if not view.every_s:
                    while await reader.readline():
                        self.answers += 1
                    self.refused.append(f"{view.path}: ended")
                    return
                length = next(line for line in head.split("\r\n") if line.lower().startswith("content-length"))
                await reader.readexactly(int(length.partition(":")[2]))
                self.answers += 1
                await asyncio.sleep(view.every_s)
        finally:
            writer.close()


def measure(server: Server, views: list[View], seconds: float) -> tuple[Figures, Pages]:
    with Pages(server.url, views) as pages:
        time.sleep(min(seconds, 8))  # the first look at each view
        server.figures()
        pages.answers = 0
        time.sleep(seconds)
        return server.figures(), pages


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    for name, number in (("partitions", 10_000), ("groups", 1_000), ("delayed", 1_000_000), ("pages", 50)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--seconds", type=float, default=30.0, help="for each measurement")
    chosen = parser.parse_args()
    if chosen.serve:
        serve()
        return
    with server() as broker:
        fill(broker.bootstrap, chosen.partitions, chosen.groups, chosen.delayed)
        rows = []
        many = [VIEWS[number % len(VIEWS)] for number in range(chosen.pages)]
        for name, views in (
            ("no page", []),
            ("one page, the overview", [View("/", 5)]),
            ("one page, the wheel", [VIEWS[0]]),
            ("one page, the schedules", [View("/schedules", 2)]),
            (f"{chosen.pages} pages, of all views", many),
        ):
            found, pages = measure(broker, views, chosen.seconds)
            longest = ", ".join(f"{ns / 1e6:.1f} ms in `{what}`" for ns, what in found.longest[:2]) or "none"
            rate = pages.answers / chosen.seconds
            rows.append(
                f"| {name} | {found.share:.1f} % | {rate:.0f} | {len(pages.refused)} | {found.long} | {longest} |"
            )
            say(f"{rows[-1]} {pages.refused}")
    print(report(chosen, rows), end="")


def report(chosen: argparse.Namespace, rows: list[str]) -> str:
    lines = [
        "# What the live page costs",
        "",
        "Written by `python -m devtools.page_load`: one broker with"
        f" {chosen.partitions:,} partitions, {chosen.groups:,} groups and",
        f"{chosen.delayed:,} delayed records; {os.cpu_count()} shared cores, Python {platform.python_version()},"
        f" {build_kind()}; {chosen.seconds:g} s for each row.",
        "",
        "| open | of a core | answers and lines of events a second | refused | turns over 5 ms | the longest of them |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
        "The share of a core is that of the whole process. Turns are measured in processor time of the loop's thread.",
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
