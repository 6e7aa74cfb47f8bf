"""What others do to a pipeline that runs: a clock that jumps, and upkeep of its tables by another Spark."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from ixion.pipelines.sinks.iceberg import iceberg_name
from ixion.pipelines.spec.sinks import TableSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The wall clock of a process is late or early by as many seconds as a file says; the monotonic clock is right.
_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long *shift;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("SOAK_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) shift = page;
    close(file);
}

int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, now);
    if (!code && shift && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += *shift;
    return code;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec value;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &value)) return -1;
    now->tv_sec = value.tv_sec;
    now->tv_usec = value.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *into) {
    struct timespec value;
    if (clock_gettime(CLOCK_REALTIME, &value)) return -1;
    if (into) *into = value.tv_sec;
    return value.tv_sec;
}
"""


class Clock:
    """The clock of those processes that are started with `environment`."""

    def __init__(self, folder: Path) -> None:
        source, library = folder / "clock.c", folder / "clock.so"
        source.write_text(_SOURCE)
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
        subprocess.run(command, check=True)
        self._file = folder / "clock.shift"
        self._file.write_bytes(bytes(8))
        self.environment = {"LD_PRELOAD": str(library), "SOAK_CLOCK": str(self._file)}

    def jump(self, seconds: int) -> None:
        """From now on it shows SECONDS more than the right time."""
        with self._file.open("r+b", buffering=0) as handle:
            handle.write(seconds.to_bytes(8, "little", signed=True))


def look_after_as_a_stranger(folder: Path, spark: SparkSession) -> str:
    """By the tables' own procedures: small files are joined, all snapshots of Iceberg but the last are expired."""
    done = spark.sql(f"OPTIMIZE delta.`{folder / 'delta'}`").collect()[0]["metrics"]
    name = iceberg_name(TableSink(format="iceberg", path=str(folder / "iceberg")), spark)
    catalog, _, table = name.partition(".")
    spark.catalog.refreshTable(name)
    options = "options => map('min-input-files', '2')"
    (joined,) = spark.sql(f"CALL {catalog}.system.rewrite_data_files(table => '{table}', {options})").collect()
    before = "TIMESTAMP '2999-01-01 00:00:00'"
    words = f"table => '{table}', older_than => {before}, retain_last => 1"
    (expired,) = spark.sql(f"CALL {catalog}.system.expire_snapshots({words})").collect()
    return (
        f"delta: {done['numFilesRemoved']} files joined; iceberg: {joined['rewritten_data_files_count']} files joined, "
        f"{expired['deleted_manifest_lists_count']} snapshots expired"
    )
