"""A small blocking client: what the command line, the tests and the brokers themselves ask a broker with.

Start with `cluster.Cluster` (where everything lives), `producer.Producer` and `reader.Reader`; `topics`, `configs`,
`offsets` and `groups` administer. One object belongs to one thread; nobody here starts a thread. Nothing is imported by
the package itself, so a caller pays for what it uses.
"""
