"""Minutes of clients at work while broker and clients are killed with SIGKILL, and a judge at the end.

    python -m devtools.soak --seconds 120

`run` starts and kills; `writer`, `copier` and `reader` are the clients, each a process that writes its own history. One
writer is Java's, because librdkafka does not know transaction.version 2 yet.
"""
