"""A deterministic simulator of a whole cluster: the real brokers, our own clients and a metadata tree in one process.

    python -m devtools.sim --seeds 100          # or: make sim ARGS="--seeds 100"
    python -m devtools.sim --seed 17 --trace t  # one of them again, with every event in a file

One seed decides everything: what the clients do, which faults come when, how long each message takes. The same seed
gives the same trace. docs/reliability.md says what is simulated, what is checked, and which broken brokers it finds.
"""
