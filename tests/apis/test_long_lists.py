"""The largest lists that a small request can name, or can make the broker walk: nobody else waits for them.

The broker is a process of its own, so that its collector has its own objects to look at. A turn of its loop over the
limit is in its log, by processor time (`devtools.stalls`).
"""

from __future__ import annotations

from pathlib import Path

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ixion.language.protocol.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ixion.language.protocol.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ixion.language.protocol.messages.k20_delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ixion.language.protocol.messages.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ixion.language.protocol.messages.k32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from ixion.language.protocol.messages.k35_describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ixion.language.protocol.messages.k43_elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from ixion.language.protocol.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ixion.language.protocol.notation import Struct
from tests.apis.asking import Asking
from tests.broker.served import Served

MANY = 20_000
PARTITIONS = 1_000
PATIENCE_MS = 60_000


def new(name: str, partitions: int) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=())


def creation(*topics: CreatableTopic, validate_only: bool) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=topics, timeout_ms=PATIENCE_MS, validate_only=validate_only)


def fetch(*numbers: int) -> FetchRequest:
    places = tuple(FetchPartition(partition=each, fetch_offset=0, partition_max_bytes=1000) for each in numbers)
    return FetchRequest(max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic="t", partitions=places),))


NAMES = tuple(MetadataRequestTopic(name=f"n{number}") for number in range(MANY))
LARGE: dict[str, tuple[Struct, type[Struct], int]] = {
    "a fetch of one partition": (fetch(*[0] * MANY), FetchResponse, 12),
    "a fetch of many": (fetch(*range(MANY)), FetchResponse, 12),
    "offsets": (
        ListOffsetsRequest(
            replica_id=-1,
            topics=(
                ListOffsetsTopic(
                    name="t",
                    partitions=tuple(ListOffsetsPartition(partition_index=each, timestamp=-1) for each in range(MANY)),
                ),
            ),
        ),
        ListOffsetsResponse,
        -1,
    ),
    "all topics": (MetadataRequest(topics=None), MetadataResponse, -1),
    "names": (MetadataRequest(topics=NAMES, allow_auto_topic_creation=False), MetadataResponse, -1),
    "names to create": (MetadataRequest(topics=NAMES, allow_auto_topic_creation=True), MetadataResponse, -1),
    "topics to check": (
        creation(*[new(f"c{number}", 1) for number in range(5_000)], validate_only=True),
        CreateTopicsResponse,
        -1,
    ),
    "partitions to check": (creation(new("c", 10_000), validate_only=True), CreateTopicsResponse, -1),
    "settings": (
        DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(resource_type=32, resource_name=str(number), configuration_keys=None)
                for number in range(2_000)
            ),
            include_synonyms=True,
            include_documentation=True,
        ),
        DescribeConfigsResponse,
        -1,
    ),
    "offsets to commit": (
        OffsetCommitRequest(
            group_id="g",
            member_id="",
            topics=tuple(
                OffsetCommitRequestTopic(
                    name=f"n{number}",
                    partitions=(
                        OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=None),
                    ),
                )
                for number in range(MANY)
            ),
        ),
        OffsetCommitResponse,
        8,
    ),
    "offsets to delete": (
        OffsetDeleteRequest(
            group_id="g",
            topics=tuple(
                OffsetDeleteRequestTopic(
                    name=f"n{number}", partitions=(OffsetDeleteRequestPartition(partition_index=0),)
                )
                for number in range(MANY)
            ),
        ),
        OffsetDeleteResponse,
        -1,
    ),
    "log directories": (DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, -1),
    "an election everywhere": (
        ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=PATIENCE_MS),
        ElectLeadersResponse,
        -1,
    ),
    "records to delete": (
        DeleteRecordsRequest(
            topics=(
                DeleteRecordsTopic(
                    name="t",
                    partitions=tuple(DeleteRecordsPartition(partition_index=each, offset=0) for each in range(MANY)),
                ),
            ),
            timeout_ms=PATIENCE_MS,
        ),
        DeleteRecordsResponse,
        -1,
    ),
    "a topic to delete": (
        DeleteTopicsRequest(topics=(DeleteTopicState(name="t", topic_id=bytes(16)),), timeout_ms=PATIENCE_MS),
        DeleteTopicsResponse,
        -1,
    ),
}


def test_other_clients_do_not_wait_for_long_lists(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        with Asking(served.bootstrap) as asking:
            (made,) = asking.ask(creation(new("t", PARTITIONS), validate_only=False), CreateTopicsResponse).topics
            assert made.error_code == ErrorCode.NONE
            for request, answer, version in LARGE.values():
                asking.ask(request, answer, version)
        served.stop_without_stalls()
