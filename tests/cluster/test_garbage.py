"""Garbage in any node of the tree: the log names the node, and the cluster goes on with the rest."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from ixion.broker.controller.cluster.controller import ClusterController
from ixion.broker.metadata import paths
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.errors import NodeExistsError
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import KafkaError
from ixion.testing import Cluster

GARBAGE = b'\xff{"version": nothing'
NODES = {
    "another broker": paths.broker(9),
    "another topic": paths.topic("garbage"),
    "the state of a partition": paths.partition_state("other", 0),
    "settings of a topic": paths.config("topics", "other"),
    "settings of brokers": paths.config("brokers", paths.DEFAULT_ENTITY),
    "settings of a user": paths.config("users", "alice"),
    "settings of a client": paths.config("clients", "app"),
    "settings of an address": paths.config("ips", "10.0.0.1"),
    "settings of a group": paths.config("groups", "g"),
    "a notice of settings": f"{paths.CONFIG_CHANGES}/config_change_0000099999",
    "a topic to delete": paths.delete_topic("nowhere"),
    "a notice of in-sync replicas": f"{paths.ISR_CHANGES}/isr_change_0000000001",
    "a notice of a failed disk": f"{paths.LOG_DIR_EVENTS}/log_dir_event_0000000001",
    "features": paths.FEATURES,
    "producer ids": paths.PRODUCER_IDS,
    "moves asked for by old tools": paths.REASSIGN_PARTITIONS,
    "elections asked for by old tools": paths.PREFERRED_ELECTION,
}
SILENT = {"a topic to delete", "a notice of in-sync replicas", "moves asked for by old tools"}  # their data is not read
SILENT |= {"elections asked for by old tools", "a notice of a failed disk"}


@pytest.mark.parametrize("what", NODES)
def test_the_cluster_goes_on(what: str, caplog: pytest.LogCaptureFixture) -> None:
    path = NODES[what]

    async def spoil(real: RealBroker) -> None:
        session = real.parts.session
        above = path.rpartition("/")[0]
        await ensure(session, [above] if above else [])
        try:
            await session.create(path, GARBAGE)
        except NodeExistsError:
            await session.set(path, GARBAGE)

    async def allocate(real: RealBroker) -> object:
        assert isinstance(real.parts.controller, ClusterController)
        return await real.parts.controller.producer_ids.allocate(real.parts.node_id, real.parts.broker_epoch)

    with Cluster(2) as cluster:
        cluster.create_topic("t")
        cluster.create_topic("other")
        cluster.wait_healthy()
        cluster.brokers[cluster.controller].call(spoil)
        cluster.kill(cluster.controller)  # the next one reads the whole tree
        cluster.restart()
        cluster.create_topic("new")
        if what == "producer ids":
            with pytest.raises(KafkaError, match=path):
                cluster.brokers[cluster.controller].call(allocate)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
        for topic in ("t", "new"):
            producer.produce(topic, b"v", partition=0)
        assert producer.flush(60) == 0
        cluster.wait(
            lambda: what in SILENT or any(path in record.getMessage() for record in caplog.records),
            f"the log names {path}",
        )
