"""Kafka's ConfigCommand sets and shows quotas."""

from __future__ import annotations

from ixion.testing import Broker
from tests.real_clients.toolbox import ToolBox


def test_quotas_are_set_shown_and_removed(box: ToolBox, broker: Broker) -> None:
    def run(*words: str) -> str:
        code, said = box.run("kafka.admin.ConfigCommand", "--bootstrap-server", broker.bootstrap, *words)
        assert code == 0, said
        return said

    both = ("--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients", "--entity-default")
    run("--alter", *both, "--add-config", "producer_byte_rate=1048576,request_percentage=50.5")
    run("--alter", "--entity-type", "clients", "--entity-name", "app", "--add-config", "consumer_byte_rate=2048")
    said = run("--describe", "--entity-type", "users", "--entity-type", "clients")
    assert "user-principal 'alice', the default client-id are" in said
    assert "producer_byte_rate=1048576.0" in said
    assert "request_percentage=50.5" in said
    assert "client-id 'app' are consumer_byte_rate=2048.0" in run("--describe", "--entity-type", "clients")
    run("--alter", *both, "--delete-config", "producer_byte_rate,request_percentage")
    run("--alter", "--entity-type", "clients", "--entity-name", "app", "--delete-config", "consumer_byte_rate")
    run("--alter", "--entity-type", "users", "--entity-name", "bob", "--add-config", "controller_mutation_rate=1.5")
    assert "controller_mutation_rate=1.5" in run("--describe", "--entity-type", "users", "--entity-name", "bob")
    run("--alter", "--entity-type", "users", "--entity-name", "bob", "--delete-config", "controller_mutation_rate")
    for ip in (("--entity-name", "10.0.0.1"), ("--entity-default",)):
        run("--alter", "--entity-type", "ips", *ip, "--add-config", "connection_creation_rate=5000")
    said = run("--describe", "--entity-type", "ips")
    assert "ip '10.0.0.1' are connection_creation_rate=5000.0" in said
    assert "the default ip are connection_creation_rate=5000.0" in said
    for ip in (("--entity-name", "10.0.0.1"), ("--entity-default",)):
        run("--alter", "--entity-type", "ips", *ip, "--delete-config", "connection_creation_rate")
    assert "rate=" not in run("--describe", "--entity-type", "clients")
