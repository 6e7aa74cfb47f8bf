"""A service and its test: orders come in on one topic, invoices go out on another.

With pytest the broker is a fixture, and this file's test would be called with it:

    def test_every_order_has_an_invoice(ixion_broker): ...

Run as a script, the broker is started by hand.

Prints:

    order 1 over 20 -> invoice 1 over 20
    order 2 over 22 -> invoice 2 over 22
"""

from __future__ import annotations

from confluent_kafka import Consumer, Producer

from ixion.testing import Broker


def write_invoices(bootstrap: str, count: int) -> None:
    """The service: reads `count` orders, writes an invoice for each, and commits what it has done."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "invoices", "auto.offset.reset": "earliest"})
    producer = Producer({"bootstrap.servers": bootstrap})
    consumer.subscribe(["orders"])
    for _ in range(count):
        order = consumer.poll(10)
        assert order is not None, "no order came"
        producer.produce("invoices", order.value(), key=order.key())
    producer.flush()
    consumer.commit(asynchronous=False)
    consumer.close()


def test_every_order_has_an_invoice(ixion_broker: Broker) -> None:
    ixion_broker.create_topic("orders")
    ixion_broker.create_topic("invoices")
    producer = Producer({"bootstrap.servers": ixion_broker.bootstrap})
    producer.produce("orders", b"20", key=b"1")
    producer.produce("orders", b"22", key=b"2")
    producer.flush()

    write_invoices(ixion_broker.bootstrap, 2)

    reader = Consumer({"bootstrap.servers": ixion_broker.bootstrap, "group.id": "r", "auto.offset.reset": "earliest"})
    reader.subscribe(["invoices"])
    for number, amount in ((b"1", b"20"), (b"2", b"22")):
        invoice = reader.poll(10)
        assert invoice is not None
        assert (invoice.key(), invoice.value()) == (number, amount)
        print(f"order {number.decode()} over {amount.decode()} -> invoice {number.decode()} over {amount.decode()}")
    reader.close()


if __name__ == "__main__":
    with Broker() as broker:
        test_every_order_has_an_invoice(broker)
