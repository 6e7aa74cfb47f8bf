"""Requests to the controller: they go to the one that the image names, and do not wait for an earlier one."""

from __future__ import annotations

import asyncio

import pytest

from ixion.broker.metadata.image import BrokerImage, ClusterImage
from ixion.broker.replica.controller_channel import ControllerChannel
from ixion.clients.faults import DisconnectedError
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataResponse
from ixion.language.protocol.registry import ApiKey
from tests.clients.fake import FakeCluster, Fault

ALL = MetadataRequest(topics=None)
VERSION = 12


def test_a_request_to_a_silent_controller_fails_when_another_one_is_elected() -> None:
    async def work(fakes: FakeCluster) -> None:
        image = ClusterImage(cluster_id="c")
        for number, node in fakes.nodes.items():
            endpoints = {"PLAINTEXT": ("127.0.0.1", node.port)}
            image.brokers[number] = BrokerImage(broker_id=number, epoch=1, endpoints=endpoints)
        image.controller_id = 1
        channel = ControllerChannel(image, "PLAINTEXT", 7)
        asking = asyncio.ensure_future(channel.ask(ApiKey.METADATA, VERSION, ALL))
        while not fakes.count(ApiKey.METADATA):
            await asyncio.sleep(0.001)
        assert not asking.done()
        image.controller_id = 2
        channel.leave()
        with pytest.raises(DisconnectedError):
            await asking
        assert isinstance(await channel.ask(ApiKey.METADATA, VERSION, ALL), MetadataResponse)
        channel.leave()
        channel.leave()
        channel.close()

    with FakeCluster(nodes=2) as fakes:
        fakes.at(1, ApiKey.METADATA, Fault.SILENCE)
        asyncio.run(asyncio.wait_for(work(fakes), 20))
