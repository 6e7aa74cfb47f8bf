"""The controller: elected on `/controller`, it creates and deletes topics, elects leaders, changes settings.

`controller` builds the parts: `election` makes it the controller, `take_over` reads and repairs the tree, `queue` runs
one change at a time, and `topics`, `leaders` and `configs` make the changes. Rules without I/O are in `planning`,
`assignment` and `leader_rules`, the nodes of a topic in `topic_nodes`. `own_broker` sends the decisions to this broker.
That is the controller of a broker that is alone; the controller of several brokers is in `cluster`.
"""
