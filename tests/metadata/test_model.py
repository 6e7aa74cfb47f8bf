"""Any sequence of operations against a plain dictionary: same results, same refusals, same tree, same events."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.broker.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.errors import MetadataError
from ixion.broker.metadata.node import Check, Create, Delete, Operation, Set
from ixion.broker.metadata.path_rules import split
from ixion.broker.metadata.session import Event

PATHS = ("/a", "/b", "/a/a", "/a/b", "/b/a", "/a/a/a")
versions = st.sampled_from((-1, -1, 0, 1, 2))
paths = st.sampled_from(PATHS)
operations = st.one_of(
    st.builds(Create, paths, st.binary(max_size=3), st.booleans(), st.booleans()),
    st.builds(Set, paths, st.binary(max_size=3), versions),
    st.builds(Delete, paths, versions),
    st.builds(Check, paths, versions),
)


@dataclass(slots=True)
class ModelNode:
    data: bytes
    ephemeral: bool = False
    version: int = 0
    creates: int = 0


@dataclass(slots=True)
class Model:
    nodes: dict[str, ModelNode] = field(default_factory=lambda: {"/": ModelNode(b"")})
    events: list[tuple[str, str]] = field(default_factory=list)

    def copy(self) -> Model:
        copied = {path: ModelNode(n.data, n.ephemeral, n.version, n.creates) for path, n in self.nodes.items()}
        return Model(copied, list(self.events))

    def children(self, path: str) -> list[str]:
        return sorted(split(other)[1] for other in self.nodes if other != "/" and split(other)[0] == path)

    def apply(self, operation: Operation) -> str:
        """The name of the refusal, or nothing."""
        path = operation.path
        parent = split(path)[0]
        if isinstance(operation, Create):
            above = self.nodes.get(parent)
            if above is None:
                return "NoNodeError"
            if above.ephemeral:
                return "NoChildrenForEphemeralsError"
            path += f"{above.creates:010d}" if operation.sequential else ""
            if path in self.nodes:
                return "NodeExistsError"
            above.creates += 1
            self.nodes[path] = ModelNode(operation.data, operation.ephemeral)
            self.events += [("created", path), ("children", parent)]
            return ""
        if path not in self.nodes:
            return "NoNodeError"
        node = self.nodes[path]
        if operation.version not in (-1, node.version):
            return "BadVersionError"
        if isinstance(operation, Set):
            node.data, node.version = operation.data, node.version + 1
            self.events.append(("changed", path))
        elif isinstance(operation, Delete):
            if self.children(path):
                return "NotEmptyError"
            del self.nodes[path]
            self.events += [("deleted", path), ("children", parent)]
        return ""


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(operations, min_size=1, max_size=4), max_size=25))
def test_the_engine_is_a_dictionary_with_rules(transactions: list[list[Operation]]) -> None:
    store = EmbeddedStore(IN_MEMORY)
    session = store.open_session(1000)
    events: list[tuple[str, str]] = []

    def hear(event: Event) -> None:
        events.append((event.kind.value, event.path))

    for path in ("/", *PATHS):
        session.watch(path, hear)
    model = Model()
    for transaction in transactions:
        tried = model.copy()
        refusals = [tried.apply(operation) for operation in transaction]
        first = next((index for index, refusal in enumerate(refusals) if refusal), None)
        if first is None:
            session.multi(transaction)
            model = tried
            continue
        with pytest.raises(MetadataError) as caught:
            session.multi(transaction)
        assert (type(caught.value).__name__, caught.value.operation) == (refusals[first], first)
    assert events == [event for event in model.events if event[1] in ("/", *PATHS)]
    for path, node in model.nodes.items():
        found = session.get(path)
        assert (found.data, found.stat.version, bool(found.stat.owner)) == (node.data, node.version, node.ephemeral)
        assert session.children(path) == model.children(path)
        assert found.stat.children == len(model.children(path))
    session.close()
    left = store.open_session(1000)
    for path, node in model.nodes.items():
        assert (left.exists(path) is None) == node.ephemeral
    store.close()
