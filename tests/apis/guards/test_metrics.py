from __future__ import annotations

from urllib.request import urlopen

from ixion.language.model.acl_names import Operation, ResourceKind
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.apis.guards.secured import AskingAs, allow, rule, secured


def test_refusals_and_rules_are_counted() -> None:
    with secured(metrics=True) as broker:
        with AskingAs(broker.bootstrap, "root") as root, AskingAs(broker.bootstrap, "bob") as bob:
            allow(root, rule("alice", Operation.READ, ResourceKind.TOPIC, "t"))
            bob.ask(MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), MetadataResponse)
        with urlopen(broker.metrics_url) as page:
            text = page.read().decode()
    assert "\nixion_acls 1\n" in text
    assert 'ixion_authorization_refused_total{operation="Describe",resource="Topic"} 1\n' in text
