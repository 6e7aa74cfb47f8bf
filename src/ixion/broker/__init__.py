"""The broker. `startup` builds it from its parts; a request goes from `network` by `apis` to all others.

`controller` changes topics and leaders, `coordinators` keep groups and transactions, `schedules` delayed records,
`replica` partitions as leader and follower, `log` partitions on disk, `metadata` the tree of the cluster. `security`
authenticates clients, `acl` has their rights and `quota` their limits. `web` shows the figures.
"""
