"""Administration: topics, settings, groups, offsets, replicas, transactions, users, quotas.

Each call is a plan (`plan`): a generator without I/O that says which requests it wants answered. `machine` runs plans
on the core of the clients, `routes` sends requests to the brokers that can answer them and repeats what has moved.
`runner` is the blocking face, `ixion.clients.aio.admin` the one on asyncio; both run the same plans.
"""
