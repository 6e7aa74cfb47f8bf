"""A Bytewax dataflow from a topic to a topic."""

import os

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.testing import run_main
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

bootstrap = os.environ["BOOTSTRAP"]
admin = AdminClient({"bootstrap.servers": bootstrap})
for made in admin.create_topics([NewTopic("bytewax-in", 2, 1), NewTopic("bytewax-out", 1, 1)]).values():
    made.result(30)
producer = Producer({"bootstrap.servers": bootstrap})
for number in range(100):
    producer.produce("bytewax-in", str(number).encode())
assert producer.flush(30) == 0

flow = Dataflow("bytewax")
numbers = op.input("in", flow, KafkaSource([bootstrap], ["bytewax-in"], tail=False, starting_offset=OFFSET_BEGINNING))
doubled = op.map("double", numbers, lambda each: KafkaSinkMessage(None, str(2 * int(each.value)).encode()))
op.output("out", doubled, KafkaSink([bootstrap], "bytewax-out"))
run_main(flow)

consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bytewax", "auto.offset.reset": "earliest"})
consumer.subscribe(["bytewax-out"])
found: list[int] = []
while len(found) < 100:
    message = consumer.poll(60)
    assert message is not None, f"{len(found)} of 100 arrived"
    assert message.error() is None, message.error()
    found.append(int(message.value()))
assert sorted(found) == [2 * number for number in range(100)]
consumer.close()
