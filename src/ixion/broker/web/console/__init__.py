"""The live page of a broker: what it does, what waits in it and why.

    inside.py    what the page may read of the broker
    api/         the data of each view, as JSON under /api/v1; the page uses nothing else
    views/       HTML made of that data, and nothing of it in scripts
    static/      style, type and a few small scripts, each for one thing that moves
    history.py   the figures of the last hour, and what happened

It is imported with the first request for it; only `history` runs before.
"""
