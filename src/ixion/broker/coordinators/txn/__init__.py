"""The transaction coordinator: which producer may write under a transactional id, and how its transactions end.

`states`, `snapshot`, `transaction`, `starting`, `adding` and `ending` are rules without I/O that take the time as an
argument; `storage` knows the records of `__transaction_state`; `coordinator` stores each change before it answers.
"""
