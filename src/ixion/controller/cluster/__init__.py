"""The controller of several brokers.

`controller` is elected and resigns; a `term` is the time in between, with all that the controller knows (`cluster`) and
its way to write (`fenced_tree`) and to speak (`channels`). `take_over` begins a term. What happens then is in
`broker_changes`, `topics`, `deletion`, `leaders`, `isr`, `shutdown`, `reassignment` and `balance`; they decide by rules
without I/O (`elections`, `isr_rules`, `states`) and move partitions and replicas by `partition_machine` and
`replica_machine`. A `batch` makes the requests to brokers from one change.
"""
