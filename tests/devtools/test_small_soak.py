"""The small form of the cluster soak: real processes under faults, and brokers that are broken on purpose."""

from __future__ import annotations

import gc
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from devtools.soak.broken import CLUSTER_FAULTS
from devtools.soak.proxy import Proxies
from devtools.soak.small import run

pytestmark = pytest.mark.timeout(900)  # seconds on a quiet machine; its own bounds are wide


def test_a_cluster_keeps_its_promises_under_faults(tmp_path: Path) -> None:
    report = run(tmp_path, seed=1)
    assert report.anomalies == []
    assert len(report.struck) == 4
    assert sum(report.struck.values()) >= 2, "the leader never went away: this run has proven nothing"
    assert report.acknowledged > 200


@pytest.mark.parametrize(("broken", "fault"), [("leader-alone", "behind"), ("repetitions", "spoiled")])
def test_a_broken_cluster_is_found(tmp_path: Path, broken: str, fault: str) -> None:
    report = run(tmp_path, seed=1, names=(fault,) * 3, broken=broken)
    assert {each.kind for each in report.anomalies} & CLUSTER_FAULTS[broken].shows_as


def test_proxies_leave_no_socket_behind() -> None:
    """They end while connections come and while a broker does not read. A socket that is left fails the test."""
    with socket.create_server(("127.0.0.1", 0)) as broker, ExitStack() as clients, Proxies() as proxies:
        port = proxies.add("127.0.0.1", broker.getsockname()[1])
        for _ in range(20):
            client = clients.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.setblocking(False)
            client.send((1 << 20).to_bytes(4, "big") + bytes(1 << 16))
    gc.collect()
