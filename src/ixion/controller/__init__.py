"""The controller: elected on `/controller`, it creates and deletes topics, elects leaders, changes settings.

`controller` is the one that acts; `election` makes it the controller, `assignment` places replicas, `topics` knows
which nodes make a topic, `leaders` who leads a partition.
"""
