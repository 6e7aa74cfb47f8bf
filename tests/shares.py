"""Which tests take the time: those marked `slow`, those that need a JVM or Spark, and the rest.

`slow` are the tests named below, which take seconds on a quiet machine, and any with that mark. `spark` is every test
with the fixture `spark_parts`. `jvm` need not be marked: `devtools.parts.need` notes when a test asks for one.
`make quick` (IXION_QUICK) skips all three; every run ends with the time that each took.

`make test` runs the tests interpreted, beside the build, and then compiled. The interpreted pass (IXION_AGAIN) leaves
out the tests named in `ONCE` and those that need a JVM: once is enough. The compiled pass leaves out the tests named in
`BESIDE_THE_BUILD`, which need no build. Whole files and folders of these, and slow ones in `make quick`, are not even
collected: every process that shares the tests would import them.

With CI=true a test may be skipped for the reasons in `ALLOWED` only: nothing is left untested unseen.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Collection, Generator
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from devtools import parts

COMPILED = os.environ.get("IXION_EXPECT") == "compiled"
QUICK = bool(os.environ.get("IXION_QUICK"))
AGAIN = bool(os.environ.get("IXION_AGAIN"))
KINDS = ("spark", "jvm", "slow")

# Folders, files, and tests of a file. What a change breaks is nearly always found without them.
SLOW = (
    "acl/test_model.py",
    "apis/test_first_write.py::test_a_transaction_over_very_many_partitions",
    "apis/test_k00_produce.py::test_very_many_partitions_are_answered_in_their_order",
    "apis/test_k00_produce.py::test_very_many_partitions_wait_for_the_disk",
    "apis/test_long_lists.py",
    "apis/test_long_request.py",
    "apis/test_streams_smoke.py",
    "apis/test_transactions_survive.py",
    "benchmarks",
    "broker/test_adopt.py",
    "broker/test_full_disk.py",
    "broker/test_serve.py",
    "broker/test_stopped_start.py",
    "cli/test_completion.py::test_in_a_terminal",
    "cli/test_completion.py::test_in_fish",
    "cli/test_consume_group.py::test_two_share_and_one_takes_over",
    "cli/test_local_cluster.py",
    "clients/consumer/test_rolling.py",
    "clients/core/test_histories.py",
    "clients/core/test_share_histories.py",
    "clients/test_cancellation.py",
    "clients/test_dropped.py::test_a_task_without_references_is_not_taken_for_garbage_while_it_waits",
    "cluster",
    "controller/cluster/test_machine.py",
    "coordinators/group/test_bad_input.py::test_ten_thousand_members_join_one_group",
    "coordinators/group/test_bounded_memory.py",
    "coordinators/group/test_classic_machine.py",
    "coordinators/group/test_consumer_crowd.py",
    "coordinators/group/test_consumer_machine.py",
    "coordinators/group/test_consumer_patterns.py::test_a_cheap_pattern_does_not_wait_for_dear_ones",
    "coordinators/group/test_streams_machine.py",
    "coordinators/share/test_across_brokers.py",
    "coordinators/test_patterns.py::test_what_is_remembered_is_bounded",
    "coordinators/txn/test_machine.py",
    "crowd",
    "delay/test_cluster.py",
    "delay/test_copies.py",
    "delay/test_crash.py",
    "delay/test_kill.py",
    "delay/test_machine.py",
    "delay/test_off.py",
    "delay/test_pending.py::test_a4_a_waiting_record_takes_few_bytes_and_a_far_one_hardly_any",
    "delay/test_reassign.py",
    "devtools/test_features.py::test_a_broker_takes_the_settings_of_every_case",
    "devtools/test_dist.py::test_few_files_lead_to_every_package_that_a_whole_build_meets",
    "devtools/test_sim.py",
    "devtools/test_small_soak.py",
    "devtools/test_soak.py",
    "faults",
    "hostile",
    "kill",
    "log/test_compaction.py::test_killed_at_any_step_of_a_compaction",
    "log/test_crash.py",
    "log/test_halfway.py",
    "log/test_compaction_model.py",
    "log/test_machine.py",
    "log/test_mover.py::test_killed_at_any_step_of_a_move",
    "log/test_recovery.py::test_flipped_bits_are_never_served",
    "log/test_threads.py",
    "metadata/test_crash.py",
    "metadata/test_model.py",
    "metadata/zookeeper/test_tls.py",
    "network/test_idle_crowd.py",
    "protocol/test_against_kio.py",
    "protocol/test_hostile.py",
    "protocol/test_steps.py::test_the_same_values_and_the_same_bytes",
    "purgatory/test_hammer.py",
    "real_clients",
    "records/test_bombs.py",
    "records/test_columns.py::test_memory_is_bounded_by_the_columns_and_not_by_the_batch",
    "records/test_columns.py::test_they_agree_with_the_records_one_by_one",
    "records/test_fuzz.py",
    "records/test_java.py",
    "replica/test_replication_model.py",
    "security/test_clients.py::test_no_client_gets_in_by_the_wrong_door",
    "security/test_java_clients.py",
    "security/test_large_answers.py",
    "security/test_python_clients.py",
    "security/test_reauthentication.py::test_sessions_end_under_load",
    "security/test_rotation.py",
    "test_examples.py",
    "test_first_hour.py",
    "testing/test_plugin.py",
    "timer/test_model.py",
)
TESTS = Path(__file__).parent

# What no compiled module decides (commands, settings, documents, tools), and what strangers' clients, crowds and
# attackers do to a broker as a whole: the compiled pass has these, and `make quick` most of them, interpreted.
ONCE = (
    "acl/test_model.py",
    "apis/guards",
    "apis/test_long_lists.py",
    "apis/test_long_request.py",
    "apis/test_transactions_of_clients.py",
    "apis/test_transactions_survive.py",
    "benchmarks",
    "broker",
    "cli",
    "clients/admin",
    "clients/consumer/test_rolling.py",
    "clients/test_cancellation.py",
    "config",
    "controller",
    "coordinators/group/test_bounded_memory.py",
    "coordinators/group/test_clients.py",
    "coordinators/group/test_consumer_crowd.py",
    "coordinators/group/test_consumer_machine.py",
    "coordinators/group/test_consumer_patterns.py",
    "coordinators/group/test_members.py",
    "coordinators/group/test_streams_machine.py",
    "coordinators/test_patterns.py",
    "coordinators/txn",
    "crowd",
    "delay/test_cluster.py",
    "delay/test_copies.py",
    "delay/test_kill.py",
    "delay/test_wheel.py",
    "devtools/test_dist.py",
    "devtools/test_history.py",
    "devtools/test_sim.py",
    "devtools/test_small_soak.py",
    "hostile",
    "kill",
    "metadata",
    "model",
    "network/test_idle_crowd.py",
    "protocol/test_hostile.py",
    "quota",
    "real_clients",
    "records/test_bombs.py",
    "records/test_columns.py::test_memory_is_bounded_by_the_columns_and_not_by_the_batch",
    "sasl",
    "security",
    "test_documents.py",
    "test_examples.py",
    "test_first_hour.py",
    "test_forks.py",
    "test_glossary.py",
    "test_install.py",
    "testing",
    "web",
)

# What is the same in both passes, and is done in the interpreted one.
BESIDE_THE_BUILD = ("delay/test_off.py", "pipelines")

# Of the processes that share the tests, one runs all tests of a row: they share a Spark, a Kafka, a ZooKeeper or a JVM.
# The rows that take longest begin first. All other tests are shared by file: LONGEST first, then slow ones. Three
# processes, each with a Spark of its own, share the pipelines, about a third of their time in each: the first two rows,
# and the fourth, which has the rest. The third starts a cluster of its own and needs none.
TOGETHER = (
    tuple(f"pipelines/test_{name}.py" for name in ("evolve", "history", "steps", "upsert")),
    tuple(f"pipelines/test_{name}.py" for name in ("backfill", "formats", "loss", "replay", "sinks", "upkeep")),
    ("pipelines/test_cluster.py",),
    ("pipelines",),
    ("cli", "clients/test_apache_kafka.py", "clients/admin/test_calls.py")
    + ("clients/consumer/test_other_members.py", "clients/consumer/test_rolling.py")
    + ("clients/share/test_share_consumer.py", "clients/admin/test_share_groups.py"),
    ("real_clients",),
    ("metadata", "broker/test_zookeeper.py", "broker/test_secured_cluster.py"),
    ("cluster", "controller/cluster/test_apache_kafka.py"),
)

# Half a minute to a minute and a half each: the last of them must not be alone at the end.
LONGEST = ("devtools/test_small_soak.py", "test_install.py", "hostile/test_wide.py", "hostile/test_amplify.py")

# Of `make quick`: seconds each, and longer than their neighbours.
WAITING = (
    "clients/test_garbage.py",
    "cli/test_consume_group.py",
    "coordinators/group/test_members.py",
    "security/test_clients.py",
    "testing/test_cluster.py",
)

DONE_COMPILED = "the same in both runs; done in the compiled one"
DONE_INTERPRETED = "the same in both runs; done in the interpreted one"

# The other of the two runs, compiled and interpreted, has these tests.
ALLOWED = frozenset(
    {
        "a JVM takes seconds: once is enough, compiled",
        "a broker of Apache Kafka: once is enough, compiled",
        "a fault replaces functions, which compiled code does not see",
        "compiled code calls its methods directly, and is not interrupted in between",
        "compiled functions cannot be watched",
        "it takes most of a minute: once is enough, compiled",
        "runs with the compiled package, see the module",
        DONE_COMPILED,
        DONE_INTERPRETED,
    }
)


def left_out() -> tuple[str, ...]:
    """The tests that this run does not have; in a pass of `make test`, the other one has them."""
    return SLOW if QUICK else ONCE if AGAIN else BESIDE_THE_BUILD if COMPILED else ()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return True if TESTS in collection_path.parents and is_left_out(collection_path) else None


def is_left_out(path: Path) -> bool:
    """A file or folder of which every test is left out."""
    return is_named(path.relative_to(TESTS).as_posix(), "", left_out())


def pytest_sessionfinish(session: pytest.Session) -> None:
    """`make test ARGS=tests/cli`: a run that has none of these tests has not failed."""
    paths = [Path(session.config.invocation_params.dir, arg.partition("::")[0]) for arg in session.config.args]
    if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and all(
        TESTS in path.parents and is_left_out(path) for path in paths
    ):
        session.exitstatus = pytest.ExitCode.OK


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow_files = {named.partition("::")[0] for named in SLOW}
    first = WAITING if QUICK else LONGEST

    def rank(item: pytest.Item) -> int:
        """Long ones first, so that no process is left alone with one at the end."""
        place = place_of(item)
        row = row_of(place)
        if row is not None:
            return row
        return len(TOGETHER) + (0 if place in first else 1 if is_named(place, "", slow_files) else 2)

    items.sort(key=rank)
    for item in items:
        if not QUICK and is_named(place_of(item), item.name, left_out()):
            item.add_marker(pytest.mark.skip(reason=DONE_COMPILED if AGAIN else DONE_INTERPRETED))
        if "spark_parts" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if is_named(place_of(item), item.name, SLOW):
            item.add_marker("slow")
        for kind in KINDS:
            if QUICK and item.get_closest_marker(kind):
                item.add_marker(pytest.mark.skip(reason=parts.left_out(kind)))


def place_of(item: pytest.Item) -> str:
    """The path of its file below tests/; empty for a test from elsewhere."""
    return _place(str(item.path))


@cache
def _place(path: str) -> str:
    return PurePosixPath(path).relative_to(TESTS).as_posix() if TESTS in Path(path).parents else ""


def row_of(path: str) -> int | None:
    """The row of TOGETHER in which a file is. None in `make quick`, which starts nothing to share."""
    return None if QUICK else next((number for number, row in enumerate(TOGETHER) if is_named(path, "", row)), None)


def group_of(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    row = row_of(file.removeprefix("tests/"))
    return file if row is None else TOGETHER[row][0]


def is_named(path: str, name: str, named: Collection[str]) -> bool:
    """Whether a list like SLOW has the test: by itself, by its file or by a folder above."""
    return any(place in named for place in (*_places(path), f"{path}::{name.partition('[')[0]}"))


@cache
def _places(path: str) -> tuple[str, ...]:
    """The file, and the folders that it is in."""
    return (path, *(str(folder) for folder in PurePosixPath(path).parents))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if parts.jvm_asked:
        parts.jvm_asked.clear()
        item.user_properties.append(("kind", "jvm"))
        report.user_properties = item.user_properties
    if report.skipped and isinstance(report.longrepr, tuple) and not may_skip(report.longrepr[2]):
        report.outcome = "failed"
        report.longrepr = f"skipped with CI=true: {report.longrepr[2]}"
    return report


def may_skip(said: str) -> bool:
    """Whether a test may be skipped that says this. At home every reason will do."""
    return os.environ.get("CI") != "true" or QUICK or said.removeprefix("Skipped: ") in ALLOWED


def kind_of(report: pytest.TestReport) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return next((kind for kind in KINDS if parts.left_out(kind) in report.longrepr[2]), "rest")
    if ("kind", "jvm") in report.user_properties:
        return "jvm"
    return next((kind for kind in KINDS if kind in report.keywords), "rest")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    seconds: dict[str, float] = defaultdict(float)
    tests: Counter[str] = Counter()
    kinds: dict[str, str] = {}  # of a test, of whose phases only one asked for a JVM
    reports = [each for some in terminalreporter.stats.values() for each in some if isinstance(each, pytest.TestReport)]
    for report in reports:
        if kinds.get(report.nodeid, "rest") == "rest":
            kinds[report.nodeid] = kind_of(report)
    for report in reports:
        seconds[kinds[report.nodeid]] += report.duration
    tests.update(kinds.values())
    said = [f"{kind} {tests[kind]:,} in {seconds[kind]:,.0f} s" for kind in (*KINDS, "rest") if tests[kind]]
    left = " (make quick skips spark, jvm and slow)" if QUICK else ""
    terminalreporter.write_line(f"tests by kind{left}: {', '.join(said)}")
    if left_out():
        files = sum(is_left_out(path) for path in TESTS.rglob("test_*.py"))
        why = "slow, left out" if QUICK else f"left to the {'compiled' if AGAIN else 'interpreted'} pass"
        terminalreporter.write_line(f"{why}: {files} files")
