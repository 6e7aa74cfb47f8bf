"""AllocateProducerIds of a stranger. What a broker's does is in tests/controller/cluster."""

from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k67_allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from tests.apis.asking import Asking


def test_a_stranger_gets_no_producer_ids(asking: Asking) -> None:
    answer = asking.ask(AllocateProducerIdsRequest(broker_id=1), AllocateProducerIdsResponse, 0)
    assert (answer.error_code, answer.producer_id_len) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 0)
