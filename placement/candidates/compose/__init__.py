"""Composing in one tree: from what its providers can serve to choices, or proposals, best first."""
