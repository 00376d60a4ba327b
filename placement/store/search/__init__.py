"""The SQL of searches for candidates: which providers can serve, which trees, and what is shown of them."""
