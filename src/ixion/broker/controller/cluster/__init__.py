"""The controller of several brokers.

`controller` is elected and resigns; a `term` is the time in between, with the controller's view of the cluster
(`cluster`), its access to the tree (`fenced_tree`) and to the brokers (`channels`). `take_over` begins a term. Then
`broker_changes`, `disks`, `topics`, `deletion`, `leaders`, `isr`, `producer_ids` and `reassignment` handle events and
requests; they decide by rules without I/O (`elections`, `isr_rules`, `states`) and move partitions and replicas by
`partition_machine` and `replica_machine`. A `batch` makes the requests to brokers from one change.
"""
