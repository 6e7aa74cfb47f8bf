"""The small form of the cluster soak: real processes under faults, and brokers that are broken on purpose."""

from __future__ import annotations

import gc
import socket
from contextlib import ExitStack
from pathlib import Path
from struct import pack

import pytest

from devtools.soak.broken import CLUSTER_FAULTS
from devtools.soak.proxy import Proxies, may_be_late
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


@pytest.mark.parametrize(
    ("key", "version", "late"), [(0, 7, True), (22, 4, True), (24, 3, False), (26, 4, False), (26, 5, True)]
)
def test_a_proxy_does_not_delay_what_ends_a_transaction_before_kip_890(key: int, version: int, late: bool) -> None:
    assert may_be_late(pack(">ihhi", 8, key, version, 1)) == late


def test_proxies_leave_no_socket_behind() -> None:
    """They end while connections come and while a broker does not read. A socket that is left fails the test."""
    with socket.create_server(("127.0.0.1", 0)) as broker, ExitStack() as clients, Proxies() as proxies:
        port = proxies.add("127.0.0.1", broker.getsockname()[1])
        for _ in range(20):
            client = clients.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.setblocking(False)
            client.send((1 << 20).to_bytes(4, "big") + bytes(1 << 16))
    gc.collect()
