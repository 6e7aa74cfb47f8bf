"""What reads topics: ranges of offsets as columns, and columns as Arrow.

`ranges` reads from here to there and is done; `arrow` hands columns to pyarrow. Nothing is imported by the package
itself, so a caller pays for what it uses.
"""
