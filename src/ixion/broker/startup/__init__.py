"""The composition root: builds a broker in 27 steps, and stops it in reverse.

`broker` starts and stops, `steps` lists the steps by name, `preflight` finds what would make them fail before
anything is changed, `scheduler` runs recurring tasks, `recurring_tasks` lists them.
"""
