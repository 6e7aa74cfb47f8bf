from __future__ import annotations

from collections.abc import Sequence

from ixion.broker.metadata import paths
from ixion.broker.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.node import Operation, Result
from tests.metadata.awaited import Awaited, run
from tests.metadata.engines import Session


def test_the_base_nodes_are_made_once_and_together(session: Session) -> None:
    session.create("/config", b"kept")
    run(ensure(Awaited(session), paths.BASE))
    stats = [session.exists(path) for path in paths.BASE]
    assert len({stat.created_zxid for stat in stats if stat is not None}) == 1
    assert None not in stats
    assert session.get("/config").data == b"kept"
    before = {path: session.get(path) for path in paths.BASE}
    run(ensure(Awaited(session), paths.BASE))
    assert {path: session.get(path) for path in paths.BASE} == before


def test_another_broker_may_create_the_same_nodes() -> None:
    """The other one makes a node between our look and our transaction."""
    store = EmbeddedStore(IN_MEMORY)
    session, other = store.open_session(1000), store.open_session(1000)
    real, calls = session.multi, 0

    def late(operations: Sequence[Operation]) -> list[Result]:
        nonlocal calls
        calls += 1
        if calls == 1:
            other.create("/a")
        return real(operations)

    session.multi = late  # type: ignore[method-assign]
    run(ensure(Awaited(session), ["/a/b/c", "/a/d"]))
    assert calls == 2
    assert session.children("/a") == ["b", "d"]
    assert session.children("/a/b") == ["c"]
    store.close()
