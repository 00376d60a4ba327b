"""The strategy fit: scores nodes for a request by what resources they have and how full these are.

Three policies, those of Volcano's ResourceStrategyFit: *fit* packs some resources and spreads others, *sra* keeps
requests off nodes that have scarce resources, *proportional* reserves other resources for idle scarce ones. A
``Profile`` says which of them count and how much.

For a scheduler with a few nodes, ``assess`` and ``best_first`` are exact and take dicts of resource class -> amount.
For thousands of nodes per request, ``scorer_for`` gives the same results over tuples.

Amounts are integers; choose units fine enough (thousandths of a core, megabytes). A class that a node lacks may be
missing or 0. Names in requests and nodes are resource classes; ``resource_class`` translates a vendor's names.

>>> gpu_first = Profile(
...     fit=Fit({"PGPU": Preference("MostAllocated", 2), "VCPU": Preference("LeastAllocated", 1)}),
...     sra=Sra({"PGPU": 1}, weight=10),
... )
>>> nodes = {
...     "cpu-1": ScoredNode({"VCPU": 32}),
...     "gpu-1": ScoredNode({"VCPU": 16, "PGPU": 8}),
...     "gpu-2": ScoredNode({"VCPU": 16, "PGPU": 8}, used={"VCPU": 8, "PGPU": 4}),
... }
>>> best_first(gpu_first, {"VCPU": 4}, nodes)
['cpu-1', 'gpu-1', 'gpu-2']
>>> best_first(gpu_first, {"VCPU": 4, "PGPU": 2}, nodes)
['gpu-2', 'gpu-1']
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

from placement.allocators.entries import InvalidEntry, resource_class
from placement.allocators.natural_order import natural_key
from placement.allocators.strategy_fit.profile import MAX_NODE_SCORE, Fit, Preference, Profile, Proportional, Sra
from placement.allocators.strategy_fit.scorer import (
    NodeAmounts,
    NodeScorer,
    OwnPart,
    Scorers,
    asked_amounts,
    scorer_for,
)

__all__ = [
    "MAX_NODE_SCORE",
    "Assessment",
    "Fit",
    "InvalidEntry",
    "NodeScorer",
    "OwnPart",
    "Preference",
    "Profile",
    "Proportional",
    "ScoredNode",
    "Scorers",
    "Sra",
    "assess",
    "best_first",
    "can_serve",
    "resource_class",
    "scorer_for",
]

_NOTHING: NodeAmounts = MappingProxyType({})


class ScoredNode(NamedTuple):
    """A node's capacity and usage by resource class."""

    allocatable: NodeAmounts
    used: NodeAmounts = _NOTHING

    def idle(self, name: str) -> int:
        """Return how much of a class is idle; negative if usage exceeds capacity."""
        return self.allocatable.get(name, 0) - self.used.get(name, 0)


def can_serve(requested: NodeAmounts, node: ScoredNode) -> bool:
    """Tell whether the node has everything that is asked for, configured or not.

    Scores do not tell (RS-16, RS-22), so check this first.

    >>> can_serve({"VCPU": 4}, ScoredNode({"VCPU": 8}, {"VCPU": 5}))
    False
    """
    return all(amount <= node.idle(name) for name, amount in asked_amounts(requested).items())


@dataclass(frozen=True, slots=True)
class Assessment:
    """A profile's judgement of one node.

    If it cannot serve the request, the rest is meaningless. Without a policy, its score is 0 and the proportion kept.
    """

    can_serve: bool
    keeps_proportion: bool
    fit: Fraction
    sra: Fraction
    maximum: Fraction

    @property
    def total(self) -> Fraction:
        """The sum of the scores, as in Volcano."""
        return self.fit + self.sra

    @property
    def normalised(self) -> Fraction:
        """The total on a scale from 0 to 100, regardless of weights."""
        return MAX_NODE_SCORE * self.total / self.maximum if self.maximum else Fraction()


def assess(profile: Profile, requested: NodeAmounts, node: ScoredNode, own: NodeAmounts | None = None) -> Assessment:
    """Judge a node by a profile, exactly.

    ``own`` is what the node itself provides of the request where others may provide the rest: it is charged no more
    than that, and a class of which it provides nothing, or more than it has left, counts as one that it lacks. By
    default the node provides everything, as in Volcano. Everything except the mean of ``fit`` is judged as if only the
    node's own part had been requested.

    Source: Volcano's ResourceStrategyFit; RS-01 to RS-39.

    Raises:
        ValueError: an amount is negative.

    >>> verdict = assess(Profile(fit=Fit(), sra=Sra({"PGPU": 1})), {"VCPU": 4}, ScoredNode({"VCPU": 16, "PGPU": 8}))
    >>> int(verdict.fit), int(verdict.sra), int(verdict.maximum), float(verdict.normalised)
    (750, 0, 2000, 37.5)
    """
    scorer = scorer_for(profile, requested, node.allocatable, None if own is None else OwnPart.exactly(own))
    allocatable, used = ([row.get(name, 0) for name in scorer.classes] for row in node)
    fit, sra = scorer.exactly(allocatable, used)
    return Assessment(
        can_serve=can_serve(requested if own is None else own, node),
        keeps_proportion=scorer.keeps_proportion(allocatable, used),
        fit=fit,
        sra=sra,
        maximum=profile.maximum,
    )


def best_first(profile: Profile, requested: NodeAmounts, nodes: Mapping[str, ScoredNode]) -> list[str]:
    """Return the names of the nodes that can serve the request, the best first.

    Nodes that break the proportion come last, or not at all if the profile filters them. Ties are broken by the natural
    order of names (dev2 before dev10), so the order of the mapping is irrelevant.

    Raises:
        ValueError: an amount is negative.

    >>> best_first(Profile(fit=Fit()), {"VCPU": 1}, {"n10": ScoredNode({"VCPU": 4}), "n2": ScoredNode({"VCPU": 4})})
    ['n2', 'n10']
    """
    verdicts = {name: assess(profile, requested, node) for name, node in nodes.items()}
    filters = profile.proportional is not None and profile.proportional.mode == "filter"
    left = [name for name, said in verdicts.items() if said.can_serve and (said.keeps_proportion or not filters)]
    return sorted(
        left, key=lambda name: (not verdicts[name].keeps_proportion, -verdicts[name].total, natural_key(name))
    )
