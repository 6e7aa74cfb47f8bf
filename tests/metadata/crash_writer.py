"""Changes a tree for ever, by a seed, and says after each change that it is done. It is meant to be killed."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator

from ixion.broker.metadata.embedded import EmbeddedStore
from ixion.broker.metadata.node import Create, Delete, Operation, Set

Tree = dict[str, bytes]


def steps(seed: int, held: Tree) -> Iterator[list[Operation]]:
    """Transactions of one to twenty operations that all succeed on a tree that holds `held`, and follow it."""
    drawn = random.Random(seed)
    tree = dict(held)
    for number in range(1_000_000):
        operations: list[Operation] = []
        for _ in range(drawn.choice((1, 5, 20))):
            path = f"/{drawn.randrange(60)}"
            data = b"%d " % number * drawn.choice((1, 1, 300))
            if path not in tree:
                operations.append(Create(path, data))
            elif drawn.random() < 0.3:
                operations.append(Delete(path))
            else:
                operations.append(Set(path, data))
            apply(tree, operations[-1:])
        yield operations


def apply(tree: Tree, operations: list[Operation]) -> None:
    for operation in operations:
        match operation:
            case Create(path, data) | Set(path, data):
                tree[path] = data
            case Delete(path):
                del tree[path]


def contents(store: EmbeddedStore) -> Tree:
    session = store.open_session(60_000)
    tree = {f"/{name}": session.get(f"/{name}").data for name in session.children("/")}
    session.close()
    return tree


def main() -> None:
    file, seed = sys.argv[1], int(sys.argv[2])
    store = EmbeddedStore(file)
    held = contents(store)
    session = store.open_session(60_000)
    session.create("/ghost", b"of the writer", ephemeral=True)
    for operations in steps(seed, held):
        session.multi(operations)
        os.write(1, b".")


if __name__ == "__main__":
    main()
