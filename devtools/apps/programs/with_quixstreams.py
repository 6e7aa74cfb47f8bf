"""A Quix Streams application: a stateful sum per key, with its changelog topic, exactly once."""

import os

from quixstreams import Application

COUNT = 50
app = Application(
    broker_address=os.environ["BOOTSTRAP"],
    consumer_group="quix",
    auto_offset_reset="earliest",
    processing_guarantee="exactly-once",
    state_dir=os.path.join(os.environ["FOLDER"], "state"),
    loglevel="WARNING",
)
numbers = app.topic("quix-in", value_deserializer="json")
sums = app.topic("quix-out", value_serializer="json")
with app.get_producer() as producer:
    for number in range(COUNT):
        producer.produce(topic="quix-in", key=b"k", value=str(number).encode())


def add(number, state):  # type: ignore[no-untyped-def]
    total = state.get("sum", 0) + number
    state.set("sum", total)
    return total


app.dataframe(numbers).apply(add, stateful=True).to_topic(sums)
app.run(count=COUNT, timeout=120)

with app.get_consumer() as consumer:
    consumer.subscribe(["quix-out"])
    last = 0
    while last != sum(range(COUNT)):
        message = consumer.poll(60)
        assert message is not None, f"nothing after {last}"
        assert message.error() is None, message.error()
        last = int(message.value())
