"""A cluster in virtual time with transactions of the older protocol. Tests hold, refuse and count its answers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

from ixion.clients.core.producer.settings import ProducerSettings
from ixion.clients.core.producer.transactions import Transactions
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k00_produce import ProduceRequest, ProduceResponse
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ixion.language.protocol.messages.k18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ixion.language.protocol.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ixion.language.protocol.messages.k26_end_txn import EndTxnRequest, EndTxnResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.wire import RequestFrame
from tests.clients.core.sim import Simulation, Wire
from tests.clients.fake import SPOKEN

TRANSACTIONAL = {ApiKey.FIND_COORDINATOR: 3, ApiKey.ADD_PARTITIONS_TO_TXN: 3, ApiKey.END_TXN: 4}  # newest version


class TransactionalSimulation(Simulation):
    """The transactional producer is initialized, and its first transaction is open."""

    def __init__(self, settings: ProducerSettings | None = None, *, nodes: int = 1, partitions: int = 2) -> None:
        chosen = settings or ProducerSettings(transactional_id="books")
        super().__init__(5, chosen, nodes=nodes, partitions=partitions, trouble=0.0)
        self.holds: set[ApiKey] = set()  # requests of these wait for `release`
        self.held: list[Callable[[], None]] = []
        self.ends: list[bool] = []  # whether each EndTxn commits
        self.refusals: dict[ApiKey, deque[ErrorCode]] = {}  # for the next answers
        self.coordinator = 0
        self.asked: Counter[ApiKey] = Counter()
        self.epochs_given = 0
        self.is_ongoing = False  # a partition was added since the last end
        assert self.machine.transactions is not None
        self.transactions: Transactions = self.machine.transactions
        self.transactions.init()
        self.run(5)
        self.transactions.begin()
        while not self.send(b"first", 0):
            self.run(0.1)  # for metadata

    def refuse(self, api: ApiKey, *codes: ErrorCode) -> None:
        self.refusals.setdefault(api, deque()).extend(codes)

    def handle(self, wire: Wire, frame: RequestFrame) -> None:
        self.asked[ApiKey(frame.api_key)] += 1
        if frame.api_key in self.holds:
            handle = super().handle
            self.held.append(lambda: handle(wire, frame))
        else:
            super().handle(wire, frame)

    def release(self) -> None:
        self.holds.clear()
        held, self.held = self.held, []
        for answer in held:
            answer()
        self.run(5)

    def _refusal(self, api: ApiKey) -> ErrorCode:
        codes = self.refusals.get(api)
        return codes.popleft() if codes else ErrorCode.NONE

    def _answer(self, node: int, request: Struct, fault: str) -> Struct:
        match request:
            case ApiVersionsRequest():
                spoken = {**{api: api.newest for api in SPOKEN}, **TRANSACTIONAL}
                entries = [
                    ApiVersion(api_key=api, min_version=api.oldest, max_version=newest)
                    for api, newest in spoken.items()
                ]
                return ApiVersionsResponse(error_code=0, api_keys=tuple(entries))
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(
                    error_code=0, node_id=self.coordinator, host=f"node-{self.coordinator}", port=9092
                )
            case InitProducerIdRequest():
                self.epochs_given += 1
                return InitProducerIdResponse(
                    throttle_time_ms=0, error_code=0, producer_id=7, producer_epoch=self.epochs_given
                )
            case AddPartitionsToTxnRequest():
                return self._add(request)
            case EndTxnRequest():
                code = self._refusal(ApiKey.END_TXN)
                if code == ErrorCode.NONE and not self.is_ongoing:
                    code = ErrorCode.INVALID_TXN_STATE
                if code == ErrorCode.NONE:
                    self.is_ongoing = False
                    self.ends.append(request.committed)
                return EndTxnResponse(error_code=code)
        return super()._answer(node, request, fault)

    def _produce(self, node: int, request: ProduceRequest, fault: str) -> ProduceResponse:
        code = self._refusal(ApiKey.PRODUCE)
        if code == ErrorCode.NONE:
            return super()._produce(node, request, fault)
        self.logs, kept = [type(log)() for log in self.logs], self.logs
        answer = super()._produce(node, request, fault)
        self.logs = kept
        topics = [
            topic.replace(
                partition_responses=tuple(part.replace(error_code=code) for part in topic.partition_responses)
            )
            for topic in answer.responses
        ]
        return answer.replace(responses=tuple(topics))

    def _add(self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        topics = []
        for topic in request.v3_and_below_topics:
            codes = [self._refusal(ApiKey.ADD_PARTITIONS_TO_TXN) for _ in topic.partitions]
            self.is_ongoing = self.is_ongoing or ErrorCode.NONE in codes
            results = [
                AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
                for number, code in zip(topic.partitions, codes, strict=True)
            ]
            topics.append(AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=tuple(results)))
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=tuple(topics))
