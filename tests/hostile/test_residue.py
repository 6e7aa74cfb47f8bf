"""Nothing stays in memory for clients that have gone. `make soak-amplify` looks at every API."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.hostile import residue
from tests.hostile.residue import USERS, guarded_broker, left_by

SOME = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.INIT_PRODUCER_ID)


@pytest.fixture(scope="module", params=[False, True], ids=["no quota", "quota"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with guarded_broker(request.param) as running:
        tracemalloc.start(1)
        yield running
        tracemalloc.stop()


@pytest.mark.parametrize("user", USERS, ids=lambda user: user or "nobody")
def test_connections_leave_nothing_behind(broker: Broker, user: str) -> None:
    left = left_by(broker, SOME, user, warm=1, rounds=3)
    if left.bytes > left.bound:  # a table may have grown in between
        left = left_by(broker, SOME, user, warm=0, rounds=3)
    assert left.bytes <= left.bound, left


def test_a_leak_is_seen(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    real, leaked = residue.send, []

    def leaking(bootstrap: str, user: str, request: bytes) -> None:
        leaked.append(bytes(5_000))
        real(bootstrap, user, request)

    monkeypatch.setattr(residue, "send", leaking)
    left = left_by(broker, [ApiKey.METADATA], "alice", warm=1, rounds=3)
    assert left.bytes > left.bound
