"""Starts the JVM of Spark directly, without Spark's launch script.

`spark-submit` is a shell script that starts a first JVM to make the command of the second one. We make that command
ourselves, and before Python imports pyspark, so that the two start at the same time. The class path and the options are
those of the script, so a class archive fits both ways of starting.

This is done for one line of Spark only, and only if nothing asks for more: variables and settings that the script acts
on, a file of settings, or a Spark that is not pyspark's own are left to the script (`can_launch`).

How the JVM ends, in all cases:

A  It is ready: it has told its address in a file, and reads its standard input from then on. This is a pipe that only
   the Python process holds. However Python ends, the pipe is closed, and the JVM exits.
B  It is not ready, and Python is killed: the same, once it is ready, half a second later.
C  It is not ready, and Python ends otherwise (Ctrl-C, an error): Python kills it first.

The folder of that file must exist until the JVM is ready or dead: a JVM that cannot write the file does not come to
read its input, and would stay for ever.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

VERSIONS: Final = ("4.0",)  # of Spark, whose options for Java are below
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
MEMORY: Final = "spark.driver.memory"
_MAIN: Final = "org.apache.spark.api.python.PythonGatewayServer"
_OPENED: Final = (
    *("lang", "lang.invoke", "lang.reflect", "io", "net", "nio"),
    *("util", "util.concurrent", "util.concurrent.atomic"),
)
_OPENED_INSIDE: Final = (
    *("java.base/jdk.internal.ref", "java.base/sun.nio.ch", "java.base/sun.nio.cs", "java.base/sun.security.action"),
    *("java.base/sun.util.calendar", "java.security.jgss/sun.security.krb5"),
)
# As Spark's launcher has them, without a module for machine learning, for which Java would look at all its modules.
_JAVA: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENED),
    *(f"--add-opens={name}=ALL-UNNAMED" for name in _OPENED_INSIDE),
    *("-Djdk.reflect.useDirectMethodHandle=false", "-Dio.netty.tryReflectionSetAccessible=true"),
    "-Dderby.connection.requireAuthentication=false",
)
_OF_THE_SCRIPT: Final = (  # settings that the script or the program that it starts act on
    *("spark.jars", "spark.files", "spark.archives", "spark.submit.", "spark.kerberos.", "spark.yarn."),
    *("spark.driver.extraClassPath", "spark.driver.extraLibraryPath", "spark.driver.defaultJavaOptions"),
    *("spark.kubernetes.", "spark.log.", "spark.hadoop.hadoop.security.", "spark.remote", "spark.connect."),
    *("spark.api.mode", "spark.local.connect"),
)
_VARIABLES: Final = ("SPARK_", "PYSPARK_SUBMIT", "PYSPARK_GATEWAY", "PYSPARK_HADOOP", "HADOOP_", "YARN_")
_OF_PYSPARK: Final = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")  # pyspark sets them itself, for its children
_POLL_S: Final = 0.01
_PORT: Final = "PYSPARK_GATEWAY_PORT"
_SECRET: Final = "PYSPARK_GATEWAY_SECRET"  # noqa: S105 - the name of a variable


class JvmEnded(Exception):  # noqa: N818 - an event
    """The JVM has ended before it was ready."""


def can_launch(version: str, home: Path, settings: Mapping[str, str]) -> bool:
    """Whether the script would do nothing else for pyspark of VERSION in HOME with these SETTINGS."""
    if os.name != "posix" or not version.startswith(tuple(f"{line}." for line in VERSIONS)):
        return False
    if any(name.startswith(_VARIABLES) and name not in _OF_PYSPARK for name in os.environ):
        return False
    # The script prefers these to the Spark that is in pyspark's own folder, and reads settings there.
    others = (home / "conf", home / "spark-distribution", Path("..", "bin", "spark-submit"))
    if any(place.exists() for place in others) or not (home / "bin" / "spark-submit").exists():
        return False
    options = settings.get(JAVA_OPTIONS, "")
    if "\\" in options or "'" in options or "-Xmx" in options:  # read or refused in its own way
        return False
    return not any(name.startswith(_OF_THE_SCRIPT) for name in settings)


class Jvm:
    """A JVM that was started."""

    def __init__(
        self, java: str, home: Path, jars: Sequence[str], settings: Mapping[str, str], output: int | None
    ) -> None:
        """SETTINGS are visible to every user of the machine. What the JVM says goes to the file OUTPUT.

        The caller makes sure that Ctrl-C does not interrupt this.
        """
        self._folder: Final = tempfile.mkdtemp(prefix="ixion-jvm-")
        self._place: Final = Path(self._folder, "address")
        self._owner: Final = os.getpid()
        self._port, self._secret = 0, ""
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_CONF_DIR": str(home / "conf"),
            "SPARK_ENV_LOADED": "1",
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_CONNECT_MODE": "0",
            "PYTHONHASHSEED": "0",  # of Spark's Python workers: all must put a key into the same partition
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._place),
        }
        carried = home / "jars"
        places = [str(home / "conf"), *map(str, carried.glob("slf4j-api-*.jar")), str(carried / "*"), *jars]
        properties = [f"-D{name}={value}" for name, value in settings.items()]
        options = [f"-Xmx{settings.get(MEMORY, '1g')}", *shlex.split(settings.get(JAVA_OPTIONS, "")), *_JAVA]
        atexit.register(self.end)
        self.process: Final = subprocess.Popen(  # noqa: S603 - the user's own Java
            [java, "-cp", os.pathsep.join(places), *options, *properties, _MAIN],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            preexec_fn=_ignore_interrupts,
        )

    def end(self) -> None:
        """Kill it, unless it is ready: then it ends by itself."""
        atexit.unregister(self.end)
        if os.getpid() != self._owner:  # a fork of the process that has started it
            return
        if hasattr(self, "process"):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def wait(self) -> None:
        """Wait until the JVM is ready. If it is not, because of Ctrl-C or an error, it is killed.

        Raises `JvmEnded` if it ended by itself; its output says why.
        """
        try:
            while not self._place.exists():
                if self.process.poll() is not None:
                    raise JvmEnded
                time.sleep(_POLL_S)
            self._port, self._secret = _address(self._place.read_bytes())
        except BaseException:
            self.end()
            raise
        atexit.unregister(self.end)
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def found(self) -> Iterator[None]:
        """In this block, pyspark finds the JVM, which is ready, by two variables."""
        os.environ[_PORT], os.environ[_SECRET] = str(self._port), self._secret
        try:
            yield
        finally:
            del os.environ[_PORT], os.environ[_SECRET]


def _ignore_interrupts() -> None:
    """Ctrl-C reaches all processes of a terminal; Python decides when its JVM ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _address(data: bytes) -> tuple[int, str]:
    """Port and secret, as Spark writes them: two numbers of four bytes and a text."""
    port, length = struct.unpack(">ii", data[:8])
    return port, data[8 : 8 + length].decode()
