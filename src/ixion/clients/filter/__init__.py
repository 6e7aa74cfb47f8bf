"""Filter expressions over records, as the records view of the live page and `ixion consume --filter` take them.

    value.status == "failed" and value.total >= 100
    key contains "c-12" or headers.trace startswith "9f"
    value.items[*].sku in ("a-1", "a-2") and not value.test
    value matches "^order-[0-9]+$" and partition != 3

`parse.compiled` makes a `Filter` of such a text. What an expression may cost is bounded: it has at most `LONGEST`
characters and `DEEPEST` levels; a regular expression is RE2's, whose time grows with the length of the text only.
"""
