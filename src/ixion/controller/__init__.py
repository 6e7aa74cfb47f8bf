"""The controller: elected on `/controller`, it creates and deletes topics, elects leaders, changes settings.

`controller` puts the parts together: `election` makes it the controller, `take_over` reads and mends the tree, `queue`
lets one change run at a time, and `topics`, `leaders` and `configs` make the changes. Rules without I/O are in
`planning`, `assignment` and `leader_rules`, the nodes of a topic in `topic_nodes`. `own_broker` gives the
decisions to this broker. That is the controller of a broker alone; the controller of several brokers is in `cluster`.
"""
