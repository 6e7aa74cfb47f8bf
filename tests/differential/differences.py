"""Where ixion answers otherwise than Apache Kafka 4.3 on purpose. docs/differences.md gives users the reasons.

A differential run accepts nothing else. An entry names the API, the row of the document, and a test of the request and
of both answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ixion.language.protocol.registry import ApiKey

Matches = Callable[[Any, Any, Any], bool]  # the request, Kafka's answer, ours


class Deliberate(NamedTuple):
    key: ApiKey
    row: str  # the first column of the table in docs/differences.md
    matches: Matches


def small_segments(request: Any, kafka: Any, _ixion: Any) -> bool:
    named = [config for resource in request.resources for config in resource.configs]
    return any(each.name == "segment.bytes" for each in named) and "INVALID_CONFIG" in str(kafka)


def out_of_range(_request: Any, kafka: Any, ixion: Any) -> bool:
    def offsets_left_out(answer: Any) -> Any:
        return [
            {name: value for name, value in each.items() if name not in OFFSETS}
            for topic in answer["responses"]
            for each in topic["partitions"]
        ]

    return "OFFSET_OUT_OF_RANGE" in str(kafka) and offsets_left_out(kafka) == offsets_left_out(ixion)


def only_checked(request: Any, kafka: Any, ixion: Any) -> bool:
    def ids_left_out(answer: Any) -> Any:
        return [{**each, "topic_id": None} for each in answer["topics"]]

    return bool(request.validate_only) and ids_left_out(kafka) == ids_left_out(ixion)


def listed_refused(_request: Any, kafka: Any, ixion: Any) -> bool:
    """The groups that only Kafka lists are empty, and no member ever joined them."""
    more = [each for each in kafka["groups"] if each not in ixion["groups"]]
    known = all(each in kafka["groups"] for each in ixion["groups"])
    return known and all((each["group_state"], each["group_type"]) == ("Empty", "classic") for each in more)


def deleted_refused(_request: Any, kafka: Any, ixion: Any) -> bool:
    codes = [answer["results"][0]["error_code"] for answer in (kafka, ixion)]
    return codes == ["NONE", "GROUP_ID_NOT_FOUND"]


def described_refused(_request: Any, kafka: Any, ixion: Any) -> bool:
    states = [answer["groups"][0]["group_state"] for answer in (kafka, ixion)]
    return states == ["Empty", "Dead"] and not kafka["groups"][0]["protocol_type"]


def offsets_of_refused(_request: Any, kafka: Any, ixion: Any) -> bool:
    return (kafka["error_code"], ixion["error_code"]) == ("NONE", "GROUP_ID_NOT_FOUND")


def below_log_start(request: Any, kafka: Any, ixion: Any) -> bool:
    offsets = [answer["topics"][0]["partitions"][0]["offset"] for answer in (kafka, ixion)]
    return bool(request.topics[0].partitions[0].timestamp == LARGEST and offsets[0] < offsets[1])


def commit_to_refused(_request: Any, kafka: Any, ixion: Any) -> bool:
    codes = [answer["topics"][0]["partitions"][0]["error_code"] for answer in (kafka, ixion)]
    return codes[0] == "UNKNOWN_MEMBER_ID" and codes[1] in ("ILLEGAL_GENERATION", "GROUP_ID_NOT_FOUND")


LARGEST: Final = -3  # the timestamp by which ListOffsets asks for the record with the largest one
OFFSETS: Final = frozenset({"high_watermark", "last_stable_offset", "log_start_offset"})
NO_GROUP: Final = "A join that is refused makes no group"
DELIBERATE: Final = (
    Deliberate(ApiKey.INCREMENTAL_ALTER_CONFIGS, "Segments may be small", small_segments),
    Deliberate(ApiKey.FETCH, "A fetch out of range names the offsets", out_of_range),
    Deliberate(ApiKey.CREATE_TOPICS, "A topic that is only checked has no id", only_checked),
    Deliberate(ApiKey.LIST_GROUPS, NO_GROUP, listed_refused),
    Deliberate(ApiKey.DELETE_GROUPS, NO_GROUP, deleted_refused),
    Deliberate(ApiKey.DESCRIBE_GROUPS, NO_GROUP, described_refused),
    Deliberate(ApiKey.OFFSET_DELETE, NO_GROUP, offsets_of_refused),
    Deliberate(ApiKey.OFFSET_COMMIT, NO_GROUP, commit_to_refused),
    Deliberate(ApiKey.LIST_OFFSETS, "The record with the largest timestamp", below_log_start),
)


def is_deliberate(key: ApiKey, request: Any, kafka: Any, ixion: Any) -> bool:
    return any(each.key is key and each.matches(request, kafka, ixion) for each in DELIBERATE)
