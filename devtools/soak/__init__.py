"""Minutes of clients at work while broker and clients are killed or put to sleep, and a judge at the end.

    python -m devtools.soak --seconds 120

`run` starts and disturbs; `writer`, `copier` and `reader` are the clients, each a process that writes its own history.
One writer is Java's, because librdkafka does not know transaction.version 2 yet. `broken` holds brokers that break one
promise each, which the judge must find.
"""
