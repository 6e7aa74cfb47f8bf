"""Opens the SQLite file of the embedded engine: creates it if it is missing, locks it, checks that it is ours."""

from __future__ import annotations

import os
import sqlite3
from typing import Final

from ixion.broker.metadata.errors import StoreUnusableError
from ixion.broker.metadata.sqlite_tree import SCHEMA

IN_MEMORY: Final = ":memory:"
_URI: Final = "file:"  # how the name of a tree in memory that several connections share begins
_APPLICATION: Final = 0x4978696F  # "Ixio": marks the file as ours
_LAYOUT: Final = 1  # version of our tables


def open_file(file: str) -> sqlite3.Connection:
    """Open the file. If it is in use, not ours, damaged or unreadable, raise without changing it."""
    try:
        if file == IN_MEMORY or file.startswith(_URI):
            connection = _connect(file)
            if connection.execute("PRAGMA application_id").fetchone()[0] == 0:
                _make_tables(connection)
            return connection
        if not os.path.exists(file):
            _make_file(file)
        connection = _connect(file)
        try:
            _claim(file, connection)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        problem = "another process has it open" if error.sqlite_errorname == "SQLITE_BUSY" else str(error)
        raise StoreUnusableError(file, problem) from None
    except OSError as error:
        raise StoreUnusableError(file, error.strerror or str(error)) from None
    return connection


def shared_in_memory(name: str) -> str:
    """A file for `open_file` that is in memory, and stays for as long as any connection to it is open."""
    return f"{_URI}{name}?mode=memory&cache=shared"


def _connect(file: str) -> sqlite3.Connection:
    uri = file.startswith(_URI)
    return sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False, uri=uri)


def _make_file(file: str) -> None:
    """Create the file under another name, then rename it: atomic, with two flushes instead of ten."""
    unfinished = f"{file}.{os.getpid()}.new"
    try:
        os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))  # it has users' keys
        connection = _connect(unfinished)
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = WAL")
        _make_tables(connection)
        connection.close()
        _flush(unfinished)
        os.link(unfinished, file)
        _flush(os.path.dirname(file) or ".")
    except FileExistsError:
        pass  # another process has created it meanwhile; the first to open it owns it
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in (*SCHEMA, "CREATE TABLE counter (zxid INTEGER NOT NULL)", "INSERT INTO counter VALUES (0)"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {_LAYOUT}")


def _flush(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _claim(file: str, connection: sqlite3.Connection) -> None:
    def number(pragma: str) -> int:
        value: int = connection.execute(f"PRAGMA {pragma}").fetchone()[0]
        return value

    connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # until it is closed; also avoids the shared-memory file
    if number("application_id") != _APPLICATION:
        raise StoreUnusableError(file, "it is not a file of ixion")
    if number("user_version") != _LAYOUT:
        raise StoreUnusableError(file, f"its layout is {number('user_version')}; this ixion supports {_LAYOUT}")
    connection.execute("PRAGMA synchronous = FULL")  # a commit returns when it is on the disk
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("COMMIT")
