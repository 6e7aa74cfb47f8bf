"""The data of each view, one module per view. A result is a `TypedDict`; OpenAPI describes it by its annotations."""
