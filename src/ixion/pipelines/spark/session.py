"""The one place that starts Spark."""

from __future__ import annotations

import atexit
import logging
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from ixion.pipelines.errors import NoSparkError, PipelineError
from ixion.pipelines.installed import pyspark
from ixion.pipelines.spark import jars as jar_files
from ixion.pipelines.spark.class_archive import Archive, archive_for, make_archive, make_in_background
from ixion.pipelines.spark.java_classes import java_class, keep_classes
from ixion.pipelines.spark.java_version import need_java
from ixion.pipelines.spark.launch import Jvm, JvmEnded, can_launch
from ixion.pipelines.spark.master import is_one_process, need_master
from ixion.pipelines.spark.short_messages import innermost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ixion.pipelines.spec import PipelineSpec

_EXTENSIONS: Final = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
# Settings whose names hold one of these are not shown by Spark, and not given to it on its command line.
_HIDDEN: Final = r"(?i)secret|password|token|access[.]?key|jaas|ssl[.]key"
_ARCHIVE: Final = "spark.ixion.classArchive"  # the archive for which this JVM notes its classes
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
# For the first seconds of a JVM; options of the user come later on its command line and win.
_SHORT_RUNS: Final = (
    # Java collects garbage when its classes need more room than this. The default is 21 MB, and Spark needs 150.
    "-XX:MetaspaceSize=256m",
    # Java's optimising compiler took 6 of the 14 seconds of processor time up to a first table, for code that is never
    # needed again. With ten times its usual thresholds it takes 1.7. Code that rows go through passes them at once.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
# For a run with little to do: its code is not optimised at all, and memory is collected in the simplest way. Without
# the second compiler, Java would keep less compiled code than Spark has.
_SMALL_RUNS: Final = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
_SMALL_HEAP: Final = "-XX:+UseParallelGC"
_OF_JAVA: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")  # variables that every Java reads
# Variables that Spark's launch script looks at.
_LAST_ON_CLASS_PATH: Final = "SPARK_DIST_CLASSPATH"
_OF_LAUNCHER: Final = "SPARK_LAUNCHER_OPTS"
_ALWAYS: Final = {
    "spark.redaction.regex": _HIDDEN,
    "spark.sql.redaction.options.regex": f"{_HIDDEN}|url",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    # Spark would record for every column the line of our code that made it. We never show it, and it takes most of the
    # time in which Python builds a plan.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # One value that cannot be cast becomes null, and its row can be caught by an expectation; it does not stop the
    # stream.
    "spark.sql.ansi.enabled": "false",
    # Readers other than Spark understand these; Spark's own default is a deprecated type.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A batch is staged and then moved into its table as a whole: committing tasks one by one is enough.
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


ClassArchive = Literal["off", "use", "note"]


def open_session(
    name: str,
    *,
    formats: Iterable[str] = (),
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    jars: Iterable[str] = (),
    connector: bool = True,
    class_archive: ClassArchive = "use",
    verbose: bool = False,
) -> SparkSession:
    """A session with the jars for FORMATS (of tables and records); CONF overrides everything.

    CONNECTOR: with Spark's Kafka connector; else only with the client by which a pipeline asks about topics.
    CLASS_ARCHIVE: start the JVM with a class archive if there is one (see `class_archive`). With "note", if there is
    none, its classes are noted, and `close_session` creates one from them.
    """
    return Starting(
        name,
        formats=formats,
        master=master,
        conf=conf,
        jars=jars,
        connector=connector,
        class_archive=class_archive,
        verbose=verbose,
    ).session()


class Starting:
    """Spark while it starts. The arguments are those of `open_session`; SHORT says that it will have little to do.

    If the JVM can be started without pyspark (see `launch`), this is done at once, and it starts while Python imports
    pyspark. Other ways wait for `session`.
    """

    def __init__(
        self,
        name: str,
        *,
        formats: Iterable[str] = (),
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        jars: Iterable[str] = (),
        connector: bool = True,
        class_archive: ClassArchive = "use",
        short: bool = False,
        verbose: bool = False,
    ) -> None:
        self._name: Final = name
        self._master: Final = master or "local[*]"
        self._verbose: Final = verbose
        self._java: Final = need_java()
        need_master(self._master)
        installed = pyspark()
        if installed is None:
            raise NoSparkError()
        home, version = installed
        self._home: Final = home
        formats = set(formats)
        carried = self._home / "jars"
        self._found: Final = jar_files.find(jar_files.needed(version, formats, connector=connector), jars, carried)
        here = is_one_process(self._master) and not _has_jvm()
        self._on_class_path: Final = [file for file in self._found.files if here and ":" not in file]
        shipped = replace(
            self._found, files=tuple(file for file in self._found.files if file not in self._on_class_path)
        )
        settings = _settings(formats, shipped, self._master, conf or {})
        if here:
            settings = self._with_java_options(settings, carried, class_archive, short=short)
        self._settings: Final = settings
        self._log: Final = None if verbose else _new_log()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the JVM starts Python workers
        self._jvm: Jvm | None = None
        if here and can_launch(version, self._home, settings):
            try:
                with _uninterrupted(), _open_log(self._log) as output:
                    self._jvm = Jvm(self._java, self._home, self._on_class_path, self._open_settings(), output)
            except OSError as error:  # too many processes or open files, no memory, no room for a folder
                raise self._did_not_start(error) from error

    def session(self) -> SparkSession:
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName(self._name).master(self._master)
        for key, value in self._settings.items():
            builder = builder.config(key, value)
        try:
            if self._jvm is not None:
                self._jvm.wait()
                with _uninterrupted(), self._jvm.found():
                    SparkContext._ensure_initialized()
                    gateway: Any = SparkContext._gateway
                    gateway.proc = self._jvm.process  # and so its pipe is kept
            else:
                with _uninterrupted(), _output_to(self._log), _launched_with(self._on_class_path):
                    SparkContext._ensure_initialized(
                        conf=SparkConf(loadDefaults=False).setAll([*self._open_settings().items()])
                    )
            session = builder.getOrCreate()
        except Exception as error:
            raise self._did_not_start(error) from error
        keep_classes(session)
        if self._found.packages:
            given = session.conf.get("spark.jars", "") or ""
            new = [file for file in given.split(",") if file and file not in self._found.files]
            jar_files.note_files(self._found.packages, new)
        session.sparkContext.setLogLevel("WARN" if self._verbose else "ERROR")
        if not self._verbose:  # it prints the stack of every failed batch, which we report in plain words
            logging.getLogger("py4j").setLevel(logging.CRITICAL)
        return session

    def _did_not_start(self, error: Exception) -> PipelineError:
        if self._log:
            atexit.unregister(self._log.unlink)  # it is named in the error
        return _did_not_start(error, self._found.packages, self._log)

    def _open_settings(self) -> dict[str, str]:
        """Every user of the machine can read the JVM's command: settings with passwords are set afterwards."""
        shown = {name: value for name, value in self._settings.items() if not re.search(_HIDDEN, name)}
        return {**shown, "spark.master": self._master}  # some of the launch depends on it

    def _with_java_options(
        self, settings: dict[str, str], carried: Path, class_archive: ClassArchive, *, short: bool
    ) -> dict[str, str]:
        given = settings.get(_JAVA_OPTIONS, "")
        options = [*_SHORT_RUNS, *(_SMALL_RUNS if short else ()), given]
        if short and "GC" not in " ".join((given, *(os.environ.get(name, "") for name in _OF_JAVA))):
            options.insert(0, _SMALL_HEAP)  # Java takes one collector only
        archive = None
        if class_archive != "off":
            archive = archive_for(self._java, [*carried.glob("*.jar"), *map(Path, self._on_class_path)], given)
        noted: dict[str, str] = {}
        if archive is not None and (archive.there or class_archive == "note"):
            # Spark splits them at blanks; a folder's name may have one.
            options += [f'"{option}"' for option in archive.options]
            noted = {_ARCHIVE: "" if archive.there else str(archive.file)}
        return {**settings, _JAVA_OPTIONS: " ".join(option for option in options if option), **noted}


def start_spark(
    spec: PipelineSpec,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    jars: Iterable[str] = (),
    make_archive: bool = False,
    short: bool = False,
    verbose: bool = False,
) -> Starting:
    """Start Spark with everything that a pipeline needs; see `Pipeline.session`."""
    return Starting(
        f"ixion pipeline {spec.name}",
        formats=spec.formats() | {spec.format.type},
        master=master or spec.spark.master,
        conf={**spec.spark.conf, **(conf or {})},
        jars=(*jars, *spec.spark.jars),
        connector=spec.needs_connector(),
        class_archive="off" if not spec.spark.class_archive else "note" if make_archive else "use",
        short=short,
        verbose=verbose,
    )


@contextmanager
def opened(starting: Starting) -> Iterator[SparkSession]:
    """The session, which is closed afterwards. After a successful end, a class archive is made if one was noted for."""
    spark = starting.session()
    try:
        yield spark
    except KeyboardInterrupt:
        with suppress(PipelineError):  # the call to the JVM that was interrupted may have left a broken connection
            close_session(spark)
        raise
    except BaseException:
        close_session(spark)
        raise
    close_session(spark, make="later")


def _has_jvm() -> bool:
    """Whether pyspark has a JVM in this process."""
    imported: Any = sys.modules.get("pyspark")
    return imported is not None and imported.SparkContext._gateway is not None


def close_session(spark: SparkSession, *, make: Literal["no", "later", "now"] = "no") -> bool:
    """Whatever else is being reported: if the JVM was killed, that is why.

    MAKE an archive of the classes that the JVM has noted, in a process of its own ("later") or before this returns.
    True if there is one, or will be.
    """
    from py4j.protocol import Py4JError

    try:
        file = spark.conf.get(_ARCHIVE, "") or ""
        class_path = str(java_class(spark, "java.lang.System").getProperty("java.class.path")) if file else ""
        spark.stop()
    except (Py4JError, OSError):
        hint = "run again: the batch it worked on is taken up again, nothing is lost and nothing is written twice"
        raise PipelineError("the JVM of Spark has gone", hint=hint, retry=True) from None
    if not file:
        return False
    archive = Archive(java=need_java(), file=Path(file))
    if make == "later":
        return make_in_background(archive, class_path) is not None
    if make == "now":
        return make_archive(archive.java, archive.file, archive.noted, class_path)
    archive.noted.unlink(missing_ok=True)
    return False


def jvm_pid(spark: SparkSession) -> int:
    return int(java_class(spark, "java.lang.ProcessHandle").current().pid())


def _settings(formats: set[str], found: jar_files.Jars, master: str, conf: Mapping[str, str]) -> dict[str, str]:
    settings = dict(_ALWAYS)
    if master.startswith("local"):
        cores = str(os.cpu_count() or 2)
        settings["spark.ui.enabled"] = "false"
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
        # The defaults, 200, 50 and up to 10,000 tasks for the smallest thing, are made for clusters.
        settings["spark.sql.shuffle.partitions"] = settings["spark.databricks.delta.snapshotPartitions"] = cores
        settings["spark.sql.sources.parallelPartitionDiscovery.parallelism"] = cores
    if found.files:
        settings["spark.jars"] = ",".join(found.files)
    if found.packages:
        settings["spark.jars.packages"] = ",".join(found.packages)
    extensions = [extension for name, extension in _EXTENSIONS.items() if name in formats]
    if extensions:
        settings["spark.sql.extensions"] = ",".join(extensions)
    if "delta" in formats:
        settings["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    return {**settings, **conf}


@contextmanager
def _launched_with(jars: Iterable[str]) -> Iterator[None]:
    """JARS come on the class path of a JVM that is launched meanwhile, after Spark's own.

    Spark copies the jars in `spark.jars` for its executors and reads them with a class loader of their own. In one
    process there are no executors to copy them for. Spark's launcher is a JVM too; it only prints the command of the
    second one, so it need not optimise.
    """
    before = {name: os.environ.get(name) for name in (_LAST_ON_CLASS_PATH, _OF_LAUNCHER)}
    parts = [part for part in (before[_LAST_ON_CLASS_PATH], *jars) if part]
    if parts:
        os.environ[_LAST_ON_CLASS_PATH] = os.pathsep.join(parts)
    os.environ.setdefault(_OF_LAUNCHER, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto")
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C counts afterwards. A JVM that is left while it is being launched does not notice, and stays for ever."""
    if threading.current_thread() is not threading.main_thread():  # signals do not come here
        yield
        return
    interrupts: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts:
        raise KeyboardInterrupt


@contextmanager
def own_interrupts() -> Iterator[None]:
    """For a command: Ctrl-C ends it, and its JVM with it, also while Spark is starting.

    Spark puts a handler in place that asks the JVM to cancel all jobs, amid whatever is being asked of it just then,
    so that both fail. It is taken out again; until then it asks for nothing.
    """
    from pyspark import SparkContext

    ours, cancel = signal.getsignal(signal.SIGINT), SparkContext.cancelAllJobs
    SparkContext.cancelAllJobs = lambda self: None  # type: ignore[method-assign]  # noqa: ARG005
    try:
        yield
    finally:
        SparkContext.cancelAllJobs = cancel  # type: ignore[method-assign]
        signal.signal(signal.SIGINT, ours)


def _new_log() -> Path:
    """For what the JVM says as long as it lives, which is until this process ends; then it is removed."""
    handle, name = tempfile.mkstemp(prefix="ixion-spark-", suffix=".log")
    os.close(handle)
    log = Path(name)
    atexit.register(log.unlink, missing_ok=True)
    return log


@contextmanager
def _open_log(log: Path | None) -> Iterator[int | None]:
    """For the output of a JVM that is started meanwhile; None: its output is shown."""
    if log is None:
        yield None
        return
    target = os.open(log, os.O_WRONLY | os.O_APPEND)
    try:
        yield target
    finally:
        os.close(target)


@contextmanager
def _output_to(log: Path | None) -> Iterator[None]:
    """The JVM inherits these streams when it is started, and keeps them: what it says goes to LOG."""
    if log is None:
        yield
        return
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_APPEND)
    try:
        os.dup2(target, 1)
        os.dup2(target, 2)
        yield
    finally:
        for number, copy in enumerate(saved, start=1):
            os.dup2(copy, number)
            os.close(copy)
        os.close(target)


def _did_not_start(error: Exception, packages: Iterable[str], log: Path | None) -> PipelineError:
    said = log.read_text(errors="replace") if log and log.exists() else ""
    if "unresolved dependency" in said or "UNRESOLVED DEPENDENCIES" in said or "download failed" in said:
        names = ", ".join(packages)
        return PipelineError(f"these jars were not found: {names}", hint=jar_files.how_to_get(packages))
    hint = f"Spark's own words are in {log}" if log else ""
    exited = isinstance(error, JvmEnded) or "JAVA_GATEWAY_EXITED" in str(error)
    faults = [line for line in said.splitlines() if re.match(r"(?:Error|Invalid|Exception)", line)]
    if exited and log and not faults:  # it would have said what it does not like
        return PipelineError("the JVM of Spark was killed while it was starting", hint=hint, retry=True)
    reason = faults[0] if exited and faults else innermost([str(error)])
    return PipelineError(f"Spark did not start: {reason}", hint=hint)
