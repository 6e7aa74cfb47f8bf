"""Compiles the hot packages with mypyc. Whatever stands in the way, the same files are installed and run interpreted.

Environment variables:
  IXION_PURE              install interpreted, without trying to compile
  IXION_REQUIRE_COMPILED  fail instead of installing interpreted
  IXION_COMPILE           the packages and files to compile, separated by spaces, instead of HOT
  IXION_OPTIMIZE          the C compiler's level, 0 to 3, instead of 3: make test takes 1
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Packages and modules that are compiled. The rest is start-up and glue, where compiling buys nothing.
HOT = (
    *("timer", "purgatory", "records", "protocol/codec", "protocol/envelope.py"),
    # Of the network, what every request goes through.
    *("wire", "network/busy_poll.py", "network/connection.py", "network/counters.py", "network/memory_pool.py"),
    *("network/plane.py", "network/processor.py", "network/request.py", "network/request_channel.py"),
    "network/request_times.py",
    *(f"network/{name}.py" for name in ("overdue", "read_buffer", "response_writer", "slow_readers", "slow_senders")),
    # Of the log, what every append and read goes through, and what reads logs as a whole: recovery and compaction.
    *(f"log/{name}.py" for name in ("append", "breather", "closing", "compaction", "config")),
    *(f"log/{name}.py" for name in ("directory_state", "epochs", "files", "flushing", "handle", "index_file")),
    *(f"log/{name}.py" for name in ("log", "offset_index", "offset_map", "prepare", "producer_entry")),
    *(f"log/{name}.py" for name in ("producer_state", "reader", "recovery", "reindexing", "replay")),
    *(f"log/{name}.py" for name in ("rolling", "scan", "segment", "segment_list", "time_index", "truncation")),
    "log/txn_index.py",
    # Of the broker, what every produce and every fetch goes through.
    *("replica/append.py", "replica/completions.py", "replica/counters.py"),
    *("replica/delayed_fetch.py", "replica/delayed_produce.py", "replica/fetch.py", "replica/results.py"),
    *("replica/follower.py", "replica/manager.py", "replica/partition.py", "replica/read.py"),
    *("apis/call.py", "apis/dispatch.py", "apis/distinct.py", "apis/fetch_answer.py", "apis/fetch_session.py"),
    *("apis/k00_produce.py", "apis/k01_fetch.py", "apis/leaders.py", "apis/topic_ids.py", "acl/rights.py"),
    # Of the clients, all that decides, and what every record of a producer goes through.
    *("clients/core", "clients/line.py", "clients/lines.py", "clients/tls_line.py", "clients/producer.py"),
    *("clients/callbacks.py", "clients/engine.py", "clients/fetched.py"),
    # Of the group coordinator, what every commit, heartbeat and rebalance goes through. (Transactions gain 10 % only.)
    *("protocol/storage.py", "apis/k08_offset_commit.py", "apis/k12_heartbeat.py"),
    *(f"coordinators/group/{name}.py" for name in ("classic_protocol", "commits", "journal", "offsets", "records")),
    *("coordinators/group/shard.py", "coordinators/group/shards.py", "coordinators/group/replay.py"),
    "coordinators/loader.py",
    *(f"coordinators/group/classic/{name}.py" for name in ("answers", "group", "heartbeats", "join", "member")),
    *(f"coordinators/group/classic/{name}.py" for name in ("rebalance", "rules", "subscriptions", "sync")),
    "coordinators/group/classic/delayed_*.py",
    # Of delayed delivery, what every waiting record goes through.
    *(f"delay/{name}.py" for name in ("bucket", "delivered", "delivery", "ids", "journal", "note", "pending", "state")),
    # Of our own consumer, what every record goes through.
    "clients/consumer/record.py",
)
SOURCE = Path("src/ixion")

# setuptools runs this file once for each question of pip (requirements, metadata, sdist, wheel). Only these commands
# need the extensions; mypyc takes half a minute to make them. An editable installation stays interpreted.
BUILDING = {"bdist_wheel", "build", "build_ext", "install"}

# The build checks types, without which there is no compiling, but not our style rules: a newer mypy may have more of
# these, and a stranger's installation is not the place to learn that. `make check` is.
# What is missing there (pyarrow, which is an extra) has no types then.
FLAGS = (
    *("--config-file=", "--explicit-package-bases"),
    *("--disable-error-code=import-untyped", "--disable-error-code=import-not-found"),
)


def hot_modules() -> list[str]:
    """A name in HOT is a package, all of it, or one file."""
    names = os.environ.get("IXION_COMPILE", "").split() or HOT
    files = [
        path
        for name in names
        for path in (SOURCE.glob(name) if name.endswith(".py") else SOURCE.glob(f"{name}/**/*.py"))
    ]
    return sorted({str(path) for path in files if path.name != "__init__.py"})


def give_up(error: BaseException) -> None:
    """Go on interpreted after `error`, unless the caller wants a compiled build or nothing."""
    if os.environ.get("IXION_REQUIRE_COMPILED"):
        raise error
    print(f"ixion: installing interpreted, because compiling failed: {error!r}", file=sys.stderr)


class OptionalBuild(build_ext):
    """A compiler that is missing or fails leaves a working, interpreted installation."""

    def finalize_options(self) -> None:
        super().finalize_options()
        # One large module has all the code, a hundred small ones lead to it: they are compiled beside it.
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            give_up(error)
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []


def extensions() -> Sequence[Extension]:
    if os.environ.get("IXION_PURE") or BUILDING.isdisjoint(sys.argv):
        return []
    os.environ["MYPYPATH"] = "src"
    try:
        from mypyc.build import mypycify

        level = os.environ.get("IXION_OPTIMIZE") or "3"
        # One C file a module: gcc takes a third of the time that one file with everything takes, which is not faster.
        built = mypycify(
            [*FLAGS, *hot_modules()],
            opt_level=level,
            debug_level="0",
            group_name="ixion",
            multi_file=True,
        )
    except (Exception, SystemExit) as error:  # mypyc ends the process when mypy finds an error
        give_up(error)
        return []
    modules = [module for module in built if isinstance(module, Extension)]
    for module in modules:
        # mypyc asks for -Werror; a newer compiler has newer warnings, and those are no reason to run interpreted.
        module.extra_compile_args = [arg for arg in module.extra_compile_args if arg != "-Werror"]
        if sys.platform != "win32":
            # Functions that nobody outside can replace are inlined and called directly, not through a jump table.
            module.extra_compile_args.append("-fvisibility=hidden")
    return modules


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuild})
