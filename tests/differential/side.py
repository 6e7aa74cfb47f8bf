"""One of the two brokers of a differential run: its connection, and what it has drawn itself.

A history names ids that brokers draw (member ids, producer ids, topic ids) by labels. `values` has this broker's id for
a label; `label_of` shows an id in an answer by its label, so that answers of both brokers can be compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k15_describe_groups import DescribeGroupsRequest
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdRequest
from ixion.language.protocol.messages.k65_describe_transactions import DescribeTransactionsRequest
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from tests.apis.raw import Raw

PATIENCE_S = 30.0
HEARD_S = 0.1  # Kafka's group coordinator learns of a topic a moment after Metadata shows it


class Side:
    def __init__(self, name: str, bootstrap: str) -> None:
        self.name = name
        self.values: dict[str, Any] = {}
        self._labels: dict[Any, str] = {}
        self.connect(bootstrap)

    def connect(self, bootstrap: str) -> None:
        self.raw = Raw(bootstrap)

    def close(self) -> None:
        self.raw.__exit__(None, None, None)

    def versions(self) -> dict[int, tuple[int, int]]:
        request = ApiVersionsRequest(client_software_name="d", client_software_version="1")
        answer = self.raw.ask(ApiKey.API_VERSIONS, 3, request)
        return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}

    def keep(self, label: str, value: Any) -> None:
        """The latest value under the label; earlier ones are still shown by it."""
        self.values[label] = value
        self._labels[value] = label

    def __getitem__(self, label: str) -> Any:
        return self.values[label]

    def label_of(self, value: Any) -> str | None:
        return self._labels.get(value)

    def ask(self, key: ApiKey, version: int, body: Struct) -> Any:
        return self.raw.ask(key, version, body)

    # Changes that take effect a moment after their answer.

    def await_topic(self, name: str, partitions: int) -> None:
        """Until its partitions have leaders; with 0 until it is gone."""

        def look() -> bool:
            topics = (MetadataRequestTopic(name=name),)
            request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
            (found,) = self.ask(ApiKey.METADATA, 12, request).topics
            return len([each for each in found.partitions if each.leader_id >= 0]) == partitions

        self.until(look, f"topic {name} has {partitions} partitions")
        time.sleep(HEARD_S)

    def await_coordinators(self) -> None:
        """Until they have loaded every partition."""
        for kind in range(2):
            request = FindCoordinatorRequest(key="any", key_type=kind)

            def look(request: FindCoordinatorRequest = request) -> bool:
                return bool(self.ask(ApiKey.FIND_COORDINATOR, 3, request).error_code == 0)

            self.until(look, "coordinators are there")
        names = tuple(f"any {number}" for number in range(50))

        def loaded() -> bool:
            states = self.ask(
                ApiKey.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(transactional_ids=names)
            ).transaction_states
            groups = self.ask(ApiKey.DESCRIBE_GROUPS, 4, DescribeGroupsRequest(groups=names)).groups
            return not {14, 15, 16} & {each.error_code for each in (*states, *groups)}

        self.until(loaded, "coordinators have loaded")

    def use_up_an_id(self) -> None:
        """Afterwards no producer has id 0, which answers about unknown ones name."""
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=1_000, producer_id=-1, producer_epoch=-1
        )
        self.until(lambda: bool(self.ask(ApiKey.INIT_PRODUCER_ID, 4, request).error_code == 0), "a producer id")

    def await_ended(self, transactional_id: str) -> None:
        """Until the markers of its transaction are written."""

        def look() -> bool:
            request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
            (found,) = self.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, request).transaction_states
            return not found.transaction_state.startswith("Prepare")

        self.until(look, f"the transaction of {transactional_id} has ended")

    def until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name}: {what}: not within {PATIENCE_S} s")
            time.sleep(0.01)
