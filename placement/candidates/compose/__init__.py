"""Composing in one tree: from what its providers can serve to choices, or proposals, best first.

A plain request is composed by ``slots``, a search under ``constraints``; ``compact`` puts its choices in order. A
planner request is composed by ``devices`` or, if its resources have hierarchical names, ``paths``: both ask an
allocator, and can tell that a tree has no proposal before its details are read.
"""
