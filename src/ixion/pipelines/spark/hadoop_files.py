"""Files that Hadoop can reach (this machine, HDFS, an object store), through Spark's file systems."""

from __future__ import annotations

import re
from typing import Any, Final

from pyspark.sql import SparkSession

from ixion.pipelines.spark.java_classes import java_class


class Files:
    """The few operations that a commit needs. A rename either happens whole or raises."""

    def __init__(self, spark: SparkSession) -> None:
        self._new_path: Final = java_class(spark, "org.apache.hadoop.fs.Path")
        self._systems: Final[dict[str, Any]] = {}  # by scheme and authority
        self._conf: Final[Any] = spark.sparkContext._jsc.hadoopConfiguration()

    def exists(self, path: str) -> bool:
        return bool(self._system(path).exists(self._path(path)))

    def is_file(self, path: str) -> bool:
        return self.exists(path) and bool(self._system(path).getFileStatus(self._path(path)).isFile())

    def read(self, path: str) -> str:
        stream = self._system(path).open(self._path(path))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        """Replace a file. After a crash the old text may be gone already, but there is never half a text."""
        self.remove(path)
        self.write_new(path, text)

    def write_new(self, path: str, text: str) -> None:
        """Create PATH with all of TEXT; after a crash it may still not exist."""
        unfinished = f"{path}.unfinished"
        stream = self._system(unfinished).create(self._path(unfinished), True)
        stream.write(bytearray(text.encode()))
        stream.close()
        self.rename(unfinished, path)

    def rename(self, old: str, new: str) -> None:
        target = self._path(new)
        self._system(new).mkdirs(target.getParent())
        if not self._system(old).rename(self._path(old), target):
            raise OSError(f"{old} could not be renamed to {new}")

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with its contents, if it exists."""
        self._system(path).delete(self._path(path), True)

    def names(self, path: str) -> list[str]:
        """The names in the folder PATH, sorted; empty if there is no such folder."""
        if not self.exists(path):
            return []
        return sorted(status.getPath().getName() for status in self._system(path).listStatus(self._path(path)))

    def has_table_log(self, path: str) -> bool:
        """Whether there is a Delta table at PATH: its log has a version. A first write that failed, because the disk
        was full or the JVM was killed, leaves the folder of the log, and names in it that begin with a dot."""
        log = f"{path}/_delta_log"
        if not self.exists(log):
            return False
        # Each name is a call to the JVM, and a log may have thousands; most begin with a digit.
        entries = self._system(log).listStatus(self._path(log))
        return any(str(entry.getPath().getName())[:1].isdigit() for entry in entries)

    def walk(self, path: str) -> list[tuple[str, int]]:
        """Every file below PATH: its name relative to PATH and its size in bytes, sorted."""
        if not self.exists(path):
            return []
        found = []
        folders = [""]
        while folders:
            folder = folders.pop()
            # Folder by folder: Hadoop's own walk starts a process for every file, to read its permissions.
            for status in self._system(path).listStatus(self._path(f"{path}/{folder}" if folder else path)):
                name = f"{folder}/{status.getPath().getName()}" if folder else str(status.getPath().getName())
                if status.isDirectory():
                    folders.append(name)
                else:
                    found.append((name, int(status.getLen())))
        return sorted(found)

    def _path(self, path: str) -> Any:
        return self._new_path(path)

    def _system(self, path: str) -> Any:
        scheme, found, rest = path.partition("://")
        place = f"{scheme}://{rest.partition('/')[0]}" if found else ""
        if place not in self._systems:
            self._systems[place] = self._path(path).getFileSystem(self._conf)
        return self._systems[place]


def one_path(path: str) -> str:
    """PATH as Spark's readers take it, for which brackets, braces, asterisks and question marks make a pattern."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)
