"""How far the search for one request goes, and in what portions it reads."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """The limits of one search, the same for every request; tests make them small.

    Args:
        steps_per_tree: the maximum number of steps for searching one tree.
        steps_per_request: the maximum for all trees together.
        placements: the maximum number of providers that the candidates of an answer name: some 60 MB of JSON.
        first_trees: the number of trees in the first portion if the best come first, or the number of candidates wanted
            if that is larger: a statement costs more than a few trees.
        growth: the ratio of each portion to the one before, which makes the number of statements logarithmic.
    """

    steps_per_tree: int = 1_000_000
    steps_per_request: int = 4_000_000
    placements: int = 500_000
    first_trees: int = 16
    growth: int = 4


LIMITS = SearchLimits()
"""The limits on a server."""
