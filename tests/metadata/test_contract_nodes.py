"""What every engine does with nodes: create, get, set, delete, children, versions, sequences."""

from __future__ import annotations

import pytest

from ixion.broker.metadata.errors import (
    BadVersionError,
    InvalidPathError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)
from tests.metadata.engines import Session


def test_a_new_node_has_its_data_and_version_zero(session: Session) -> None:
    assert session.create("/a", b"\x00data") == "/a"
    node = session.get("/a")
    assert node.data == b"\x00data"
    stat = node.stat
    assert (stat.version, stat.owner, stat.children) == (0, 0, 0)
    assert stat.created_zxid == stat.modified_zxid > 0
    assert stat.created_ms == stat.modified_ms > 1_600_000_000_000
    assert session.exists("/a") == stat


def test_set_counts_versions_and_keeps_the_creation(session: Session) -> None:
    session.create("/a", b"0")
    before = session.get("/a").stat
    after = session.set("/a", b"1")
    assert session.get("/a").data == b"1"
    assert after.version == 1
    assert after.created_zxid == before.created_zxid
    assert after.modified_zxid > before.modified_zxid
    assert session.exists("/a") == after


def test_zxids_grow_with_every_change(session: Session) -> None:
    for name in ("/a", "/b", "/c"):
        session.create(name)
    zxids = []
    for name in ("/a", "/b", "/c"):
        stat = session.exists(name)
        assert stat is not None
        zxids.append(stat.created_zxid)
    assert zxids == sorted(set(zxids))


def test_set_at_a_version(session: Session) -> None:
    session.create("/a")
    assert session.set("/a", b"first", version=0).version == 1
    with pytest.raises(BadVersionError, match="/a: the node is not at version 0"):
        session.set("/a", b"second", version=0)
    assert session.get("/a").data == b"first"


def test_delete_at_a_version(session: Session) -> None:
    session.create("/a")
    session.set("/a", b"1")
    with pytest.raises(BadVersionError):
        session.delete("/a", version=0)
    session.delete("/a", version=1)
    assert session.exists("/a") is None


def test_a_node_made_again_starts_again(session: Session) -> None:
    session.create("/a")
    session.set("/a", b"1")
    first = session.get("/a").stat
    session.delete("/a")
    session.create("/a")
    second = session.get("/a").stat
    assert second.version == 0
    assert second.created_zxid > first.modified_zxid


def test_what_is_not_there(session: Session) -> None:
    assert session.exists("/a") is None
    for refused in (
        lambda: session.get("/a"),
        lambda: session.set("/a", b""),
        lambda: session.delete("/a"),
        lambda: session.children("/a"),
    ):
        with pytest.raises(NoNodeError, match="/a: there is no such node"):
            refused()
    with pytest.raises(NoNodeError):
        session.create("/a/b")
    assert session.exists("/a/b") is None


def test_what_is_there_already(session: Session) -> None:
    session.create("/a", b"old")
    with pytest.raises(NodeExistsError, match="/a: the node exists already"):
        session.create("/a", b"new")
    assert session.get("/a").data == b"old"


def test_children_are_names_in_order(session: Session) -> None:
    session.create("/a")
    for name in ("b", "a", "B", "10", "9", "a-"):
        session.create(f"/a/{name}")
    session.create("/a/b/deeper")
    session.create("/ab")
    assert session.children("/a") == ["10", "9", "B", "a", "a-", "b"]
    assert session.get("/a").stat.children == 6
    session.delete("/a/9")
    assert session.children("/a") == ["10", "B", "a", "a-", "b"]
    assert session.get("/a").stat.children == 5


def test_changes_of_children_are_no_new_version(session: Session) -> None:
    session.create("/a")
    session.create("/a/b")
    session.set("/a/b", b"1")
    assert session.get("/a").stat.version == 0


def test_a_node_with_children_stays(session: Session) -> None:
    session.create("/a")
    session.create("/a/b")
    with pytest.raises(NotEmptyError):
        session.delete("/a")
    session.delete("/a/b")
    session.delete("/a")
    assert session.exists("/a") is None


def test_sequences_never_give_a_number_twice(session: Session) -> None:
    session.create("/a")
    assert session.create("/a/n-", sequential=True) == "/a/n-0000000000"
    assert session.create("/a/other") == "/a/other"  # counts as well
    assert session.create("/a/n-", sequential=True) == "/a/n-0000000002"
    session.delete("/a/n-0000000002")
    assert session.create("/a/n-", sequential=True) == "/a/n-0000000003"
    assert session.create("/a/", sequential=True) == "/a/0000000004"
    assert session.children("/a") == ["0000000004", "n-0000000000", "n-0000000003", "other"]


def test_ephemeral_nodes_have_an_owner_and_no_children(session: Session) -> None:
    session.create("/a", b"me", ephemeral=True)
    assert session.get("/a").stat.owner == session.session_id != 0
    with pytest.raises(NoChildrenForEphemeralsError):
        session.create("/a/b")
    with pytest.raises(NoChildrenForEphemeralsError):
        session.create("/a/b", sequential=True, ephemeral=True)
    assert session.get("/a").stat.children == 0


def test_the_root(session: Session) -> None:
    top = session.get("/").stat.children
    session.create("/a")
    assert "a" in session.children("/")
    assert session.get("/").stat.children == top + 1
    with pytest.raises(NodeExistsError):
        session.create("/")
    with pytest.raises(InvalidPathError):
        session.delete("/")


@pytest.mark.parametrize(
    "path", ["", "a", "/a/", "//a", "/a//b", "/./a", "/a/..", "/a\x00b", "/a\x1f", "/\ue000", "/😀"]
)
def test_malformed_paths(session: Session, path: str) -> None:
    for refused in (session.create, session.get, session.exists, session.delete, session.children):
        with pytest.raises(InvalidPathError):
            refused(path)
    with pytest.raises(InvalidPathError):
        session.watch(path, lambda event: None)


def test_names_in_other_scripts_and_with_odd_characters(session: Session) -> None:
    for path in ("/<default>", "/ein Thema", "/主题", "/100%", "/it's", "/..."):
        session.create(path, b"x")
        assert session.get(path).data == b"x"


def test_large_data(session: Session) -> None:
    data = bytes(range(256)) * 3_000
    session.create("/a", data)
    assert session.get("/a").data == data
