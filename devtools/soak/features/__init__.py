"""Every pair of features at once, in real processes: `make soak-features`.

A case is one topic with its settings and its clients, beside one kind of fault. The cases are a covering array
(`covering`): any two levels of different factors (`factors`) meet in at least one of them. Cases with the same fault
run together (`phase`). Each is one process of clients (`case`), on one broker and then on three; the history checker
judges each topic.
"""
