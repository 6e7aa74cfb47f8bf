"""A Faust worker: an agent with a table, which a changelog topic keeps."""

import os
import sys

import faust

sys.argv = [sys.argv[0], "--datadir", os.environ["FOLDER"], "worker", "-l", "warn", "--without-web"]
app = faust.App("faust-app", broker=f"kafka://{os.environ['BOOTSTRAP']}", store="memory://", topic_partitions=1)
words = app.topic("faust-words", value_type=str, value_serializer="raw")
counts = app.Table("faust-counts", default=int)
seen = 0


@app.agent(words)
async def count(stream):  # type: ignore[no-untyped-def]
    global seen
    async for word in stream:
        counts[word] += 1
        seen += 1
        if seen == 30:
            assert dict(counts) == {"a": 10, "b": 10, "c": 10}, dict(counts)
            os._exit(0)


@app.task
async def send() -> None:
    for number in range(30):
        await words.send(value=b"abc"[number % 3 : number % 3 + 1])


app.main()
