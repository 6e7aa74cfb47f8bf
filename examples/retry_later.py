"""Acknowledge an order and try it again later, in one transaction: neither lost nor tried twice.

A worker that fails sends the order back to its topic with `x-deliver-after-ms`, and commits the offset of the original
in the same transaction. Both count, or neither; if the worker dies in between, the original is read again. The client
is an ordinary confluent-kafka. After three attempts the order goes to a topic for dead letters instead.

Prints:

    attempt 1 of order 42: failed, again in 100 ms
    attempt 2 of order 42: failed, again in 200 ms
    attempt 3 of order 42: failed, given up
    dead letter: order 42 after 3 attempts
"""

from __future__ import annotations

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from ixion.testing import Broker

ATTEMPTS = 3


def charge(order: bytes) -> None:
    raise TimeoutError(f"the bank does not answer about {order!r}")


def attempts_of(message: Message) -> int:
    return int(dict(message.headers() or []).get("attempts") or 0)


def place_order(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("orders", b"order 42", b"customer 7")
    producer.flush()


def work(bootstrap: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "charging",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "charging-1"})
    producer.init_transactions()
    consumer.subscribe(["orders"])
    while True:
        message = consumer.poll(1)
        if message is None or message.error():
            continue
        order, attempt = message.value() or b"", attempts_of(message) + 1
        producer.begin_transaction()
        try:
            charge(order)
        except TimeoutError:
            headers: dict[str, str | bytes | None] = {"attempts": str(attempt)}
            if attempt < ATTEMPTS:
                delay_ms = 50 * 2**attempt
                headers["x-deliver-after-ms"] = str(delay_ms)
                producer.produce("orders", order, message.key(), headers=headers)
                print(f"attempt {attempt} of {order.decode()}: failed, again in {delay_ms} ms")
            else:
                producer.produce("dead-letters", order, message.key(), headers=headers)
                print(f"attempt {attempt} of {order.decode()}: failed, given up")
        done = TopicPartition(message.topic() or "", message.partition() or 0, (message.offset() or 0) + 1)
        producer.send_offsets_to_transaction([done], consumer.consumer_group_metadata())
        producer.commit_transaction()
        if attempt == ATTEMPTS:
            break
    consumer.close()


def main() -> None:
    with Broker() as broker:
        broker.create_topic("orders", 1, **{"delivery.delay.mode": "record"})
        broker.create_topic("dead-letters")
        place_order(broker.bootstrap)
        work(broker.bootstrap)
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": "dead", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["dead-letters"])
        message = consumer.poll(60)
        assert message is not None
        print(f"dead letter: {(message.value() or b'').decode()} after {attempts_of(message)} attempts")
        consumer.close()


if __name__ == "__main__":
    main()
