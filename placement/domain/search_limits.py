"""How far the search of one request goes, and in which portions it reads."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """The limits of one search, the same for every request; tests make them small.

    Args:
        steps_per_tree: how many steps the search of one tree may take.
        steps_per_request: how many all of them may take.
        placements: how many providers the candidates of one answer name at most: some 60 megabytes of JSON.
        first_trees: so many trees are read at first where the best come first, or as many as candidates are wanted: a
            statement costs more than a few trees.
        ids_per_wanted: for each candidate that is wanted so many ids of roots are looked through at first, where trees
            come by id.
        growth: each portion is so many times the one before: the number of statements grows with the logarithm.
    """

    steps_per_tree: int = 1_000_000
    steps_per_request: int = 4_000_000
    placements: int = 500_000
    first_trees: int = 16
    ids_per_wanted: int = 16
    growth: int = 4


LIMITS = SearchLimits()
"""Those of a server."""
