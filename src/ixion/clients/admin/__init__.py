"""Administration: topics, settings, groups, offsets, replicas, transactions, users, quotas.

Each call is a plan (`plan`): a generator without I/O that yields the requests that it wants answered. `machine` runs
plans on the core of the clients; `routes` sends requests to the right brokers and repeats them when something has
moved. `runner` is the blocking face, `ixion.clients.aio.admin` the one on asyncio; both run the same plans.
"""
