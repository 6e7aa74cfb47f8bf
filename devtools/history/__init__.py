"""Histories of what clients did to a broker and saw of it, and the judge of them.

Clients write one line before each operation and one after it (`operation`); `checker` reads all of them and says which
of Kafka's promises were broken. It knows nothing of the broker. `devtools.soak` makes such histories.
"""
