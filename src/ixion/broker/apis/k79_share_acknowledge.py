"""ShareAcknowledge (79), versions 1 and 2: a member of a share group says what became of records (KIP-932).

All batches of a partition count or none. The response is sent when they are stored. Epoch -1 ends the session: what the
member has acquired and not acknowledged here is released. Version 2 brought renewals (KIP-1222): `is_renew_ack` allows
type 4, and the response has the new time of the lock. A delay beside a release is ours; Kafka ignores it.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Call, Handle, Outcome
from ixion.broker.apis.guards.guard import IN_HANDLER
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.apis.share_calls import (
    ACKNOWLEDGED,
    ELSEWHERE,
    MOST_BATCHES,
    Acknowledging,
    ShareCalls,
    Verdict,
    Verdicts,
)
from ixion.broker.share.session import FINAL_EPOCH, FIRST_EPOCH, Place
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k79_share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from ixion.language.wire.answer import LATER

REPEATS: Final = {"topics": once("topic_id", partitions=once("partition_index", acknowledgement_batches=ACKNOWLEDGED))}
RIGHTS: Final = IN_HANDLER  # READ group, READ topic
NO_LEADER: Final[LeaderIdAndEpoch] = LeaderIdAndEpoch.blank()


def make(services: Services) -> Handle:
    return ShareAcknowledge(services).handle


class ShareAcknowledge:
    def __init__(self, services: Services) -> None:
        self._calls = ShareCalls(services)

    def handle(self, call: Call) -> Outcome:
        request = cast(ShareAcknowledgeRequest, call.body)
        group, member, epoch = request.group_id or "", request.member_id or "", request.share_session_epoch
        calls = self._calls
        try:
            calls.check_caller(call, group, member)
            if epoch == FIRST_EPOCH:
                raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "a session begins with a fetch")
            session = calls.session_of(call, group, member, epoch)
            if count_of(request) > MOST_BATCHES:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"more than {MOST_BATCHES} batches")
        except KafkaError as error:
            return ShareAcknowledgeResponse(
                error_code=int(error.code),
                error_message=error.message,
                acquisition_lock_timeout_ms=0,
                responses=(),
                node_endpoints=(),
            )
        if epoch != FINAL_EPOCH:
            session.advance()
        answering = Answering(calls, call, calls.lock_ms(group) if request.is_renew_ack else 0)
        wanted = [
            ((topic.topic_id, each.partition_index), each.acknowledgement_batches)
            for topic in request.topics
            for each in topic.partitions
        ]

        def then() -> None:
            if epoch == FINAL_EPOCH:
                calls.shares.end_session(session)
            answering.applied()

        acknowledging = Acknowledging(calls, session, call.rights, request.is_renew_ack, answering.done)
        acknowledging.run(call.request.lane, wanted, then)
        return answering.outcome()


class Answering:
    """The response, which may have to wait for a write."""

    def __init__(self, calls: ShareCalls, call: Call, lock_ms: int) -> None:
        self._calls = calls
        self._call = call
        self._lock_ms = lock_ms
        self._response: ShareAcknowledgeResponse | None = None
        self._later = False
        self._applied = False

    def applied(self) -> None:
        """The request is no longer needed: only its changes are still being stored."""
        self._applied = True
        if self._later and self._response is None:
            self._call.wait_for_others()

    def done(self, verdicts: Verdicts) -> None:
        self._response = self._answer(verdicts)
        if self._later:
            self._call.respond(self._response)

    def outcome(self) -> Outcome:
        if self._response is None:
            self._later = True
            if self._applied:
                self._call.wait_for_others()
            return LATER
        return self._response

    def _answer(self, verdicts: Verdicts) -> ShareAcknowledgeResponse:
        topics: dict[bytes, list[PartitionData]] = {}
        elsewhere: set[int] = set()
        for place, verdict in verdicts.items():
            topics.setdefault(place[0], []).append(self._partition(place, verdict, elsewhere))
        return ShareAcknowledgeResponse(
            error_code=0,
            acquisition_lock_timeout_ms=self._lock_ms,
            responses=tuple(
                [
                    ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=tuple(parts))
                    for topic_id, parts in topics.items()
                ]
            ),
            node_endpoints=tuple(
                [
                    NodeEndpoint(node_id=number, host=host, port=port, rack=rack)
                    for number, host, port, rack in self._calls.addresses(self._call.listener, elsewhere)
                ]
            ),
        )

    def _partition(self, place: Place, verdict: Verdict, elsewhere: set[int]) -> PartitionData:
        leader = NO_LEADER
        if verdict.code in ELSEWHERE:
            broker, epoch = self._calls.leader(*place)
            leader = LeaderIdAndEpoch(leader_id=broker, leader_epoch=epoch)
            elsewhere.add(broker)
        return PartitionData(
            partition_index=place[1],
            error_code=int(verdict.code),
            error_message=verdict.message,
            current_leader=leader,
        )


def count_of(request: ShareAcknowledgeRequest) -> int:
    return sum([len(each.acknowledgement_batches) for topic in request.topics for each in topic.partitions])
