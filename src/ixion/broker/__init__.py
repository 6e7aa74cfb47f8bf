"""The composition root: a broker is put together here, in 27 steps, and taken apart in reverse.

`broker` starts and stops, `startup` holds the steps by name, `preflight` finds what would make them fail before
anything is changed, `scheduler` runs recurring tasks, `recurring_tasks` lists them.
"""
