"""The transactions of a producer with a transactional id: which request its coordinator gets next.

    UNINITIALIZED ─ init ─▶ INITIALIZING ─▶ READY ─ begin ─▶ OPEN ─ commit ─▶ COMMITTING ─▶ READY
                                                              │  ▲ any failure: only abort is left (`failure`)
                                                              └─ abort ─▶ ABORTING ─▶ READY, in a new epoch

There is one request in flight at a time. There are two protocols (KIP-890): brokers with transaction.version 2 add
partitions and groups to a transaction by themselves and give a new epoch at its end. With older brokers the producer
adds a partition before its first batch (AddPartitionsToTxn), a group before its offsets (AddOffsetsToTxn), and requests
a new epoch after an abort (InitProducerId).

Errors: retriable ones are retried, with another coordinator if it has moved. PRODUCER_FENCED and INVALID_PRODUCER_EPOCH
mean that another producer has taken over the transactional id: that is final (`FencedError`), and so is a refusal to
use the id. Any other error fails the transaction, which can be aborted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ixion.clients.core.checks import check_long, check_place
from ixion.clients.core.client import Client
from ixion.clients.core.connection import NEVER, ConnectionMachine, Outcome
from ixion.clients.core.coordinators import read_coordinator
from ixion.clients.core.producer.batch import ProducerIdentity
from ixion.clients.core.producer.group_offsets import GroupMetadata, GroupOffsets
from ixion.clients.core.producer.identity import Identity
from ixion.clients.core.producer.transaction_requests import (
    GROUP,
    TRANSACTION,
    Asked,
    add_offsets,
    add_partitions,
    ask_coordinator,
    ask_identity,
    commit_offsets,
    end_transaction,
)
from ixion.clients.faults import FencedError, error_code
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorResponse
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdResponse
from ixion.language.protocol.messages.k24_add_partitions_to_txn import AddPartitionsToTxnResponse
from ixion.language.protocol.messages.k25_add_offsets_to_txn import AddOffsetsToTxnResponse
from ixion.language.protocol.messages.k26_end_txn import EndTxnResponse
from ixion.language.protocol.messages.k28_txn_offset_commit import TxnOffsetCommitResponse
from ixion.language.protocol.notation import Struct

if TYPE_CHECKING:
    from ixion.clients.core.producer.machine import ProducerMachine

UNINITIALIZED: Final = 0
INITIALIZING: Final = 1
READY: Final = 2
OPEN: Final = 3
COMMITTING: Final = 4
ABORTING: Final = 5
NAMES: Final = ("before init_transactions", "while it initializes", "between transactions", "in a transaction",
                "while it commits", "while it aborts")  # fmt: skip

FEATURE: Final = "transaction.version"
MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
FENCED: Final = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
FORGOTTEN: Final = (ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING)  # our producer id
ABORTABLE: Final = (
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.TRANSACTION_ABORTABLE,
)  # a commit that is refused so can be aborted
FINAL: Final = (
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    ErrorCode.UNSUPPORTED_VERSION,
)


class Transactions(Identity):
    def __init__(self, client: Client, owner: ProducerMachine, transactional_id: str, timeout_s: float) -> None:
        super().__init__(client)
        self.state = UNINITIALIZED
        self.failure: KafkaError | None = None  # of the open transaction: it can only be aborted
        self.uses_v2 = False
        self.newest_version = 2  # of the protocol that we speak
        self._owner = owner
        self._id = transactional_id
        self._timeout_ms = int(timeout_s * 1000)
        self._coordinators: dict[tuple[int, str], int] = {}  # node ids by kind and key
        self._added: set[TopicPartition] = set()
        self._to_add: dict[TopicPartition, None] = {}
        self._offsets: deque[GroupOffsets] = deque()  # to be committed
        self._groups: set[str] = set()  # added
        self._is_empty = True  # nothing was written in this transaction
        self._is_deciding = False  # a broker was asked to commit, and may have done so
        self._asked = ""  # the request in flight

    # What the producer calls.

    def init(self) -> None:
        """Start to initialize. Calling it again after a timeout continues the first call."""
        self._require(UNINITIALIZED, INITIALIZING)
        self.state = INITIALIZING

    def begin(self) -> None:
        self._require(READY)
        self.state = OPEN
        self._is_empty = True

    def commit(self) -> None:
        """Start to commit. Calling it again after a timeout continues the first call."""
        self._require(OPEN, COMMITTING)
        if self.failure is not None:
            raise self.failure
        self.state = COMMITTING

    def abort(self) -> None:
        """Start to abort. Calling it again after a timeout continues the first call. ValueError after a commit that may
        have been carried out: then only a repeated commit gets the outcome."""
        self._require(OPEN, COMMITTING, ABORTING)
        if self._is_deciding:
            raise ValueError("the commit is under way and may be done; call commit_transaction again for its outcome")
        self.state = ABORTING
        self._to_add.clear()
        self._offsets.clear()

    def send_offsets(self, offsets: Mapping[TopicPartition, int], group: GroupMetadata) -> None:
        self._require(OPEN)
        if self.failure is not None:
            raise self.failure
        checked = {check_place(place): check_long("an offset", offset) for place, offset in offsets.items()}
        if checked:
            self._offsets.append(GroupOffsets(group, checked))

    @property
    def is_settled(self) -> bool:
        """Whether the last act is done."""
        if self.fatal is not None or (self.failure is not None and self.state != ABORTING):
            return True
        return self.state in (READY, OPEN) and not self._offsets

    def check(self) -> None:
        """KafkaError if the producer has failed for good, or the transaction can only be aborted."""
        if self.fatal is not None:
            raise self.fatal
        if self.failure is not None:
            raise self.failure

    @property
    def is_open(self) -> bool:
        return self.state == OPEN

    @property
    def is_aborting(self) -> bool:
        return self.state == ABORTING

    def check_open(self) -> None:
        """KafkaError if no record may be sent now."""
        self._require(OPEN)
        if self.failure is not None:
            raise self.failure

    def fail(self, error: KafkaError) -> None:
        """Fail the transaction, because a record was not written: it can only be aborted."""
        if self.state in (OPEN, COMMITTING) and self.failure is None:
            self.failure = error
            self._offsets.clear()

    def may_write(self, place: TopicPartition) -> bool:
        """Whether batches of the partition may be sent. Adds it to the transaction first if needed."""
        if self.state not in (OPEN, COMMITTING) or self.failure is not None:
            return False
        self._is_empty = False
        if self.uses_v2 or place in self._added:
            return True
        self._to_add[place] = None
        return False

    # What the machine calls.

    @property
    def wake_s(self) -> float:
        wanted = "" if self._is_asking or self.fatal is not None else self._wanted()
        return max(self._not_before_s, self._ready_s(wanted)) if wanted else NEVER

    def _ready_s(self, wanted: str) -> float:
        """When `_machine_for` may find a connection; NEVER if a socket or metadata will wake us first."""
        if wanted == "nothing":
            return 0.0
        if wanted in ("find", "find group"):
            return self._client.some_ready_s
        node_id = self._coordinators[self._coordinator_of(wanted)]
        machine = self._client.connection(node_id)
        if machine is None:
            return self._client.may_try_s(node_id)
        return machine.throttled_until_s if machine.ready else NEVER

    def bump(self) -> None:
        """Does nothing: the coordinator gives a new epoch with the abort."""

    def forget_question(self) -> None:
        super().forget_question()
        self._asked = ""

    def tick(self, now_s: float, is_wanted: bool) -> None:  # noqa: ARG002  (a transaction knows by itself)
        if self.state == COMMITTING and self.failure is not None:
            self.state = OPEN  # the call raises the failure; the caller may abort
        if self._is_asking or self.fatal is not None or now_s < self._not_before_s:
            return
        wanted = self._wanted()
        if wanted and self.state == ABORTING:
            self._owner.drop_unsent()
        if wanted and self._client.denied is not None:
            self.fatal = self._client.denied
        elif wanted == "nothing":
            self._finish(has_epoch=False)
        elif wanted:
            machine = self._machine_for(wanted, now_s)
            if machine is not None:
                self._ask(wanted, machine, now_s)

    def _wanted(self) -> str:
        """The next request, "nothing" if a transaction ends without one, "" if there is nothing to do."""
        state = self.state
        if state in (UNINITIALIZED, READY):
            return ""
        if (TRANSACTION, self._id) not in self._coordinators:
            return "find"
        if state == INITIALIZING:
            return "init"
        if state == ABORTING:
            if self._owner.has_flying:
                return ""
            return "nothing" if self._is_empty else "end"
        if self.failure is not None:
            return ""
        if self._to_add:
            return "add partitions"
        if self._offsets:
            group = self._offsets[0].group.group_id
            if not self.uses_v2 and group not in self._groups:
                return "add offsets"
            return "commit offsets" if (GROUP, group) in self._coordinators else "find group"
        if state == COMMITTING and not self._owner.incomplete:
            return "nothing" if self._is_empty else "end"
        return ""

    def _machine_for(self, wanted: str, now_s: float) -> ConnectionMachine | None:
        if wanted in ("find", "find group"):
            return self._client.least_loaded(now_s)
        key = self._coordinator_of(wanted)
        node_id = self._coordinators[key]
        machine = self._client.ready(node_id, now_s)
        if machine is None and not self._client.is_connecting(node_id):
            del self._coordinators[key]  # it could not be reached: another may coordinate by now
            self._pause(now_s)
        return machine

    def _coordinator_of(self, wanted: str) -> tuple[int, str]:
        return (GROUP, self._offsets[0].group.group_id) if wanted == "commit offsets" else (TRANSACTION, self._id)

    def _ask(self, wanted: str, machine: ConnectionMachine, now_s: float) -> None:
        try:
            api, version, request = self._request(wanted, machine)
        except KafkaError as fault:
            self.fatal = fault
            return
        self._is_asking = True
        self._asked = wanted
        machine.send(api, version, request, self, now_s)

    def _request(self, wanted: str, machine: ConnectionMachine) -> Asked:
        if wanted == "find":
            return ask_coordinator(machine, TRANSACTION, self._id)
        if wanted == "find group":
            return ask_coordinator(machine, GROUP, self._offsets[0].group.group_id)
        if wanted == "init":
            self.uses_v2 = min(machine.features.get(FEATURE, 0), self.newest_version) >= 2
            return ask_identity(machine, self._id, self._timeout_ms, self.current if self.is_known else None)
        if wanted == "add partitions":
            return add_partitions(machine, self._id, self.current, self._to_add)
        if wanted == "add offsets":
            return add_offsets(machine, self._id, self.current, self._offsets[0].group.group_id)
        if wanted == "commit offsets":
            self._is_empty = False
            return commit_offsets(machine, self._id, self.current, self._offsets[0], is_v2=self.uses_v2)
        self._is_deciding = self.state == COMMITTING
        return end_transaction(machine, self._id, self.current, commits=self._is_deciding, is_v2=self.uses_v2)

    # Answers.

    def complete(self, outcome: Outcome, now_s: float) -> None:
        asked = self._asked
        self._is_asking = False
        self._asked = ""
        if not isinstance(outcome, Struct):
            if asked not in ("find", "find group"):
                self._coordinators.clear()
            self._pause(now_s)
            return
        code = self._take(asked, outcome)
        if code == ErrorCode.NONE:
            if not isinstance(outcome, FindCoordinatorResponse):  # the coordinator may be named, and out of reach
                self._failures = 0
            return
        if code in MOVED:
            self._coordinators.clear()
        if code.retriable or code == ErrorCode.CONCURRENT_TRANSACTIONS:
            self._pause(now_s)
            return
        text = f"transactional id {self._id!r}: {code.explanation}"
        if code in FENCED:
            self.fatal = FencedError(code, text)
        elif asked == "end" and self.state == COMMITTING and code in ABORTABLE:
            self._is_deciding = False  # nothing was committed, and an abort recovers
            self.fail(KafkaError(code, text))
        elif asked == "end" and (code in FORGOTTEN or (code == ErrorCode.INVALID_TXN_STATE and self._never_began)):
            self._finish(has_epoch=False)  # there is nothing left to abort
        elif code in FINAL or asked in ("find", "init", "end"):
            self.fatal = KafkaError(code, text)
        else:
            self.fail(KafkaError(code, text))

    @property
    def _never_began(self) -> bool:
        """Whether the coordinator may not know the transaction that is aborted: the addition of its first partition was
        refused, or got no answer. An addition that arrives late is of the old epoch, and refused."""
        return self.state == ABORTING and not (self.uses_v2 or self._added or self._groups)

    def _pause(self, now_s: float) -> None:
        self._failures += 1
        self._not_before_s = now_s + self._client.retry.pause_s(self._failures)

    def _take(self, asked: str, answer: Struct) -> ErrorCode:
        """Apply an answer. Returns its first error."""
        if isinstance(answer, FindCoordinatorResponse):
            return self._found(asked, answer)
        if isinstance(answer, InitProducerIdResponse):
            code = error_code(answer.error_code)
            if code == ErrorCode.NONE:
                self.current = ProducerIdentity(answer.producer_id, answer.producer_epoch)
                self.state = READY
            return code
        if isinstance(answer, AddPartitionsToTxnResponse):
            return self._partitions_added(answer)
        if isinstance(answer, AddOffsetsToTxnResponse):
            code = error_code(answer.error_code)
            if code == ErrorCode.NONE and self._offsets:
                self._is_empty = False
                self._groups.add(self._offsets[0].group.group_id)
            return code
        if isinstance(answer, TxnOffsetCommitResponse):
            codes = [error_code(part.error_code) for topic in answer.topics for part in topic.partitions]
            wrong = [code for code in codes if code != ErrorCode.NONE]
            if not wrong and self._offsets:
                self._offsets.popleft()
            return wrong[0] if wrong else ErrorCode.NONE
        assert isinstance(answer, EndTxnResponse)
        code = error_code(answer.error_code)
        if code == ErrorCode.NONE:
            if answer.producer_id >= 0:
                self.current = ProducerIdentity(answer.producer_id, answer.producer_epoch)
            self._finish(has_epoch=answer.producer_id >= 0)
        return code

    def _found(self, asked: str, answer: FindCoordinatorResponse) -> ErrorCode:
        node_id, code, address = read_coordinator(answer)
        if code == ErrorCode.NONE:
            self._client.introduce(node_id, address)
            if asked == "find":
                self._coordinators[TRANSACTION, self._id] = node_id
            elif self._offsets:
                self._coordinators[GROUP, self._offsets[0].group.group_id] = node_id
        return code

    def _partitions_added(self, answer: AddPartitionsToTxnResponse) -> ErrorCode:
        worst = ErrorCode.NONE
        for topic in answer.results_by_topic_v3_and_below:
            for result in topic.results_by_partition:
                code = error_code(result.partition_error_code)
                if code == ErrorCode.NONE:
                    place = TopicPartition(topic.name, result.partition_index)
                    self._to_add.pop(place, None)
                    self._added.add(place)
                elif worst in (ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED):  # because of another one
                    worst = code
        return worst

    def _finish(self, *, has_epoch: bool) -> None:
        """End the transaction. After an abort a new epoch is requested, unless the answer had one."""
        assert not self._owner.incomplete, "records of a transaction would outlive it"
        self._is_deciding = False
        self._added.clear()
        self._to_add.clear()
        self._groups.clear()
        self.failure = None
        self.state = INITIALIZING if self.state == ABORTING and not has_epoch else READY
        self._is_empty = True

    def _require(self, *allowed: int) -> None:
        if self.fatal is not None:
            raise self.fatal
        if self.state not in allowed:
            raise ValueError(f"the producer is {NAMES[self.state]}; this needs one {NAMES[allowed[0]]}")
