"""What is the embedded engine's own: its file, its owner, its clock."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ixion.broker.metadata.embedded import FILE_NAME, IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.errors import BadVersionError, SessionExpiredError, StoreFullError, StoreUnusableError
from ixion.broker.metadata.node import Create, Set
from ixion.broker.metadata.session import Event


def test_a_change_is_there_after_reopening(tmp_path: Path) -> None:
    file = str(tmp_path / "m")
    store = EmbeddedStore(file)
    session = store.open_session(1000)
    session.create("/a", b"1")
    session.create("/a/n-", sequential=True)
    session.create("/e", ephemeral=True)
    written = session.get("/a")
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    store = EmbeddedStore(file)
    session = store.open_session(1000)
    assert session.get("/a") == written
    assert session.children("/") == ["a"]
    assert session.create("/a/n-", sequential=True) == "/a/n-0000000001"
    session.create("/b")
    assert session.get("/b").stat.created_zxid > written.stat.modified_zxid
    store.close()


def test_a_second_opening_is_refused(tmp_path: Path) -> None:
    file = str(tmp_path / "m")
    store = EmbeddedStore(file)
    with pytest.raises(StoreUnusableError, match="another process has it open"):
        EmbeddedStore(file)
    program = "import sys; from ixion.broker.metadata.embedded import EmbeddedStore; EmbeddedStore(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True, check=False)
    assert "StoreUnusableError" in done.stderr
    assert "another process has it open" in done.stderr
    store.close()
    EmbeddedStore(file).close()


def test_files_that_are_not_ours(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("broker.id=1\n" * 500)
    with pytest.raises(StoreUnusableError, match="not a database"):
        EmbeddedStore(str(text))
    assert text.read_text() == "broker.id=1\n" * 500
    foreign = tmp_path / "foreign"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = foreign.read_bytes()
    with pytest.raises(StoreUnusableError, match="is not a file of ixion"):
        EmbeddedStore(str(foreign))
    assert foreign.read_bytes() == before
    newer = tmp_path / "newer"
    EmbeddedStore(str(newer)).close()
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreUnusableError, match="its layout is 99; this ixion supports 1"):
        EmbeddedStore(str(newer))
    with pytest.raises(StoreUnusableError, match="No such file"):
        EmbeddedStore(str(tmp_path / "no" / "where"))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "m"
    store = EmbeddedStore(str(file))
    session = store.open_session(1000)
    for number in range(200):
        session.create(f"/{number}", b"x" * 100)
    store.close()
    whole = file.read_bytes()
    file.write_bytes(whole[:4096] + bytes(len(whole) - 4096))
    with pytest.raises(StoreUnusableError, match=f"metadata in {file}: it cannot be read: .*malformed"):
        EmbeddedStore(str(file))


def test_a_full_disk_refuses_the_change_and_keeps_the_rest(tmp_path: Path) -> None:
    store = EmbeddedStore(str(tmp_path / "m"))
    session = store.open_session(1000)
    session.create("/kept", b"1")
    events: list[Event] = []
    session.watch("/new", events.append)
    store._connection.execute("PRAGMA max_page_count = 1")  # what the file has now, and no page more
    with pytest.raises(StoreUnusableError, match="full"):
        session.multi([Set("/kept", b"2"), Create("/new", bytes(100_000))])
    assert session.get("/kept").data == b"1"
    assert events == []
    store._connection.execute("PRAGMA max_page_count = 1000")
    session.create("/new", bytes(100_000))
    assert len(events) == 1
    assert session.exists("/new") is not None
    store.close()


def test_a_session_lives_by_calls_and_heartbeats_only() -> None:
    now = 0
    store = EmbeddedStore(IN_MEMORY, clock_ms=lambda: now)
    calling, beating, silent = (store.open_session(100) for _ in range(3))
    ended: list[str] = []
    calling.on_expired(lambda: ended.append("calling"))
    beating.on_expired(lambda: ended.append("beating"))
    silent.on_expired(lambda: ended.append("silent"))
    now = 60
    calling.exists("/")
    beating.heartbeat()
    now = 100
    store.expire_sessions()
    assert ended == []  # a timeout has passed when more time has
    now = 101
    store.expire_sessions()
    assert ended == ["silent"]
    now = 161
    store.expire_sessions()
    assert ended == ["silent", "calling", "beating"]
    store.close()


def test_a_closed_store_is_closed() -> None:
    store = EmbeddedStore(IN_MEMORY)
    session = store.open_session(1000)
    store.close()
    store.close()
    with pytest.raises(SessionExpiredError):
        session.exists("/")
    with pytest.raises(StoreUnusableError, match="it was closed"):
        store.open_session(1000)


def test_threads_lose_no_change_and_no_event() -> None:
    """Four threads count in one node by versions, a fifth gets every change."""
    store = EmbeddedStore(IN_MEMORY)
    watching = store.open_session(60_000)
    watching.create("/n", b"0")
    events: list[Event] = []
    running = threading.Lock()

    def hear(event: Event) -> None:
        assert running.acquire(blocking=False), "two callbacks at once"
        events.append(event)
        running.release()

    watching.watch("/n", hear)

    def count() -> None:
        session = store.open_session(60_000)
        left = 100
        while left:
            node = session.get("/n")
            try:
                session.set("/n", b"%d" % (int(node.data) + 1), version=node.stat.version)
            except BadVersionError:  # another thread was faster
                continue
            left -= 1

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert watching.get("/n").data == b"400"
    assert len(events) == 400
    store.close()


def test_a_full_disk_refuses_changes_and_nothing_else(tmp_path: Path) -> None:
    """SQLite's own limit on the size of the file has the effect of a full disk."""
    store = EmbeddedStore(str(tmp_path / FILE_NAME))
    session = store.open_session(1000)
    session.create("/a", b"kept")
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFullError, match="full"):
        session.multi([Create("/b", b"small"), Create("/c", bytes(100_000))])
    assert session.children("/") == ["a"]
    assert session.get("/a").data == b"kept"
    store._connection.execute("PRAGMA max_page_count = 1000000")
    session.multi([Create("/b", b"small"), Create("/c", bytes(100_000))])
    store.close()
    again = EmbeddedStore(str(tmp_path / FILE_NAME))
    assert again.open_session(1000).children("/") == ["a", "b", "c"]
    again.close()
