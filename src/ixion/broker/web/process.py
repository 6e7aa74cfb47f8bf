"""Metrics of the process and its interpreter, with the names of Prometheus' own clients."""

from __future__ import annotations

import gc
import os
import time

from ixion.broker.web.exposition import Exposition


def process(page: Exposition) -> None:
    spent = os.times()
    page.counter("process_cpu_seconds_total", "Processor time.", spent.user + spent.system)
    resident = resident_bytes()
    if resident is not None:
        page.gauge("process_resident_memory_bytes", "Resident memory.", resident)
    files = open_files()
    if files is not None:
        page.gauge("process_open_fds", "Open file descriptors.", files)
    limit = file_limit()
    if limit is not None:
        page.gauge("process_max_fds", "Limit of open file descriptors.", limit)
    page.gauge("process_threads", "Threads.", threads())
    page.gauge("process_clock_seconds", "The broker's clock, seconds since 1970.", time.time())
    generations = list(enumerate(gc.get_stats()))
    page.counter(
        "python_gc_collections_total",
        "Runs of the cyclic collector.",
        [({"generation": number}, stats["collections"]) for number, stats in generations],
    )
    page.counter(
        "python_gc_objects_collected_total",
        "Objects freed by the cyclic collector.",
        [({"generation": number}, stats["collected"]) for number, stats in generations],
    )
    page.gauge("python_gc_frozen_objects", "Objects that the cyclic collector ignores.", gc.get_freeze_count())


def resident_bytes() -> int | None:
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def open_files() -> int | None:
    try:
        return len(os.listdir("/proc/self/fd")) - 1  # without the descriptor of the listing itself
    except OSError:
        return None


def file_limit() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def threads() -> int:
    import threading

    return threading.active_count()
