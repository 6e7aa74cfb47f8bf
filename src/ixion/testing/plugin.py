"""Brokers as pytest fixtures; installing ixion is enough to have them.

    def test_orders(ixion_broker):                        # a fresh broker for this test
        ixion_broker.create_topic("orders", partitions=3)
        run_my_service(bootstrap=ixion_broker.bootstrap)

    def test_more(ixion_broker_session): ...              # one broker for the whole run

    @pytest.mark.ixion(num_partitions=3, memory=True)     # settings of a fresh one, by Kafka's names
    def test_settings(ixion_broker): ...

    def test_fail_over(ixion_cluster): ...                # three brokers that are one cluster, for this test
    @pytest.mark.ixion(brokers=5)                         # or more of them, and settings as above

Settings for all brokers: define a fixture `ixion_settings` in your conftest.py, with session scope, that returns them.
Every run of pytest loads this module, even without Kafka, so it imports nothing of the broker before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from ixion.testing.broker import Broker
    from ixion.testing.cluster import Cluster

OPTIONS: Final = ("memory", "metrics")  # of Broker itself; no setting has such a name
MARKER: Final = "ixion(**settings): settings of the ixion_broker of this test, num_partitions=3 for num.partitions"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture(scope="session")
def ixion_settings() -> Mapping[str, Any]:
    """Settings of all brokers of this run. Override this fixture to set some."""
    return {}


@pytest.fixture
def ixion_broker(request: pytest.FixtureRequest, ixion_settings: Mapping[str, Any]) -> Iterator[Broker]:
    """A fresh broker for this test, deleted with its data when the test ends."""
    with make(settings_of(request, ixion_settings)) as broker:
        yield broker


@pytest.fixture
def ixion_cluster(request: pytest.FixtureRequest, ixion_settings: Mapping[str, Any]) -> Iterator[Cluster]:
    """A fresh cluster for this test: three brokers, or as many as its marker says."""
    from ixion.testing.cluster import Cluster

    given = settings_of(request, ixion_settings)
    brokers = given.pop("brokers", 3)
    settings, options = split(given)
    with Cluster(brokers, settings, **options) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def ixion_broker_session(ixion_settings: Mapping[str, Any]) -> Iterator[Broker]:
    """One broker for the whole run. Each test should use its own topics and groups."""
    with make(ixion_settings) as broker:
        yield broker


def settings_of(request: pytest.FixtureRequest, usual: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(usual)
    for marker in reversed(list(request.node.iter_markers("ixion"))):  # that of the class, then that of the function
        if marker.args:
            raise pytest.UsageError("@pytest.mark.ixion takes settings by name: ixion(num_partitions=3)")
        given |= marker.kwargs
    return given


def split(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings by Kafka's names, and options."""
    options = {name: value for name, value in given.items() if name in OPTIONS}
    return {name.replace("_", "."): value for name, value in given.items() if name not in OPTIONS}, options


def make(given: Mapping[str, Any]) -> Broker:
    from ixion.testing.broker import Broker

    settings, options = split(given)
    return Broker(settings, **options)
