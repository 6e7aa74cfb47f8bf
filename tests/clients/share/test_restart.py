"""A broker that is stopped or killed and comes back: no job is lost, and an accepted one is not delivered again."""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools.kafka import free_port
from ixion.clients import Admin, Producer, ShareConsumer
from ixion.clients.admin.configs import Resource
from ixion.language.model.errors import KafkaError
from ixion.language.model.resource_type import ResourceType
from ixion.testing import Broker
from tests.clients.faces import FACES, Face

JOBS = 60


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.name)
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_queue_outlives_its_broker(end: str, face: Face, tmp_path: Path) -> None:
    broker = Broker({"listeners": f"PLAINTEXT://127.0.0.1:{free_port()}"}, data=tmp_path)
    stored: list[int] = []
    with broker:
        broker.create_topic("jobs", 1)
        with Admin(broker.bootstrap) as admin:
            group = Resource(ResourceType.GROUP, "workers")
            admin.alter_configs({group: {"share.auto.offset.reset": "earliest"}}).check()
        with Producer(broker.bootstrap) as producer:
            for number in range(JOBS):
                producer.send("jobs", b"%d" % number)
        restarts = 0
        with face.share_consumer(
            broker.bootstrap,
            group="workers",
            topics=["jobs"],
            share_acknowledgement_mode="explicit",
            share_acquire_mode="record_limit",
        ) as consumer:
            while len(stored) < JOBS:
                for record in consumer.poll(5.0, 10):
                    result = consumer.accept(record)
                    if restarts < 2 and len(stored) >= 20 * (restarts + 1):
                        getattr(broker, end)()
                        broker.start()
                        restarts += 1
                    try:
                        consumer.wait(result, 30.0)
                    except KafkaError:
                        continue  # delivered again, unless it was stored and the answer lost
                    stored.append(record.offset)
                if restarts == 2 and not consumer.metrics()["records-held"]:
                    with Admin(broker.bootstrap) as admin:
                        left = admin.list_share_group_offsets(["workers"]).check()["workers"]
                    if all(at.lag == 0 for at in left.values()):
                        break
        assert len(stored) == len(set(stored)), "an accepted job was delivered again"
        assert restarts == 2
        assert JOBS - len(stored) <= 2 * 10, "only jobs whose answer was lost are missing"
        with ShareConsumer(broker.bootstrap, group="workers", topics=["jobs"]) as plain:
            assert plain.poll(1.0) == []
