"""The rights that APIs require if the broker has an authorizer: `guard` explains them, `shapes` has the usual ones."""
