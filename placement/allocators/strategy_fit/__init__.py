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
    "fit_score",
    "keeps_proportion",
    "resource_class",
    "scorer_for",
    "sra_score",
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


def fit_score(fit: Fit, requested: NodeAmounts, node: ScoredNode, own: NodeAmounts | None = None) -> Fraction:
    """Score how well a request fits a node: from 0 to 100 x ``fit.weight``, exactly.

    The score is the weighted mean, over the classes that are both requested and configured, of used'/allocatable
    (MostAllocated) or (allocatable - used')/allocatable (LeastAllocated), where used' = used + requested. It is 0 if
    any of these classes is short. A class that the node lacks contributes 0 and keeps its weight in the mean. If no
    requested class is configured, every node gets 0.

    ``own`` is what the node itself provides of the request where others may provide the rest: it is charged no more
    than that, and a class of which it provides nothing, or more than it has left, counts as one that it lacks. By
    default the node provides everything, as in Volcano.

    Source: Volcano's ResourceStrategyFit; RS-01 to RS-23, RS-30.

    Raises:
        ValueError: an amount is negative.

    >>> packed = Fit({"PGPU": Preference("MostAllocated", 2), "VCPU": Preference("LeastAllocated", 1)})
    >>> float(fit_score(packed, {"VCPU": 2, "PGPU": 2}, ScoredNode({"VCPU": 16, "PGPU": 8}, {"VCPU": 4, "PGPU": 2})))
    541.6666666666666
    """
    return assess(Profile(fit=fit), requested, node, own).fit


def sra_score(sra: Sra, requested: NodeAmounts, node: ScoredNode) -> Fraction:
    """Score how well a node keeps scarce resources free: from 0 to 100 x ``sra.weight``, exactly.

    The score is the weight of the scarce resources that do not count against the node, relative to the weight of all.
    One counts if the node has it, in use or not, and the request does not ask for it. In ``upstream`` mode it counts
    whether requested or not, and a node that lacks a requested class gets 0.

    Source: Volcano's ResourceStrategyFit; RS-25 to RS-29, RS-31.

    Raises:
        ValueError: an amount is negative.

    >>> scarce, node = Sra({"CUSTOM_T4": 1, "CUSTOM_A10": 1}, weight=2), ScoredNode({"VCPU": 16, "CUSTOM_T4": 10})
    >>> int(sra_score(scarce, {"VCPU": 2}, node)), int(sra_score(scarce, {"VCPU": 2, "CUSTOM_T4": 2}, node))
    (100, 200)
    """
    return assess(Profile(sra=sra), requested, node).sra


def keeps_proportion(policy: Proportional, requested: NodeAmounts, node: ScoredNode) -> bool:
    """Tell whether a node that serves the request keeps enough idle for its idle primary resources.

    For each primary class that the node has: idle secondary - requested secondary >= idle primary x ratio; equality
    passes. ``policy.exempt`` exempts requests for a primary; with ``own``, idle primary is what such a request leaves.
    Comparison is exact, without rounding.

    Source: Volcano's ResourceStrategyFit; RS-32 to RS-39.

    Raises:
        ValueError: an amount is negative.

    >>> policy, node = Proportional({"PGPU": {"VCPU": 8}}), ScoredNode({"VCPU": 74, "PGPU": 8})
    >>> keeps_proportion(policy, {"VCPU": 10}, node), keeps_proportion(policy, {"VCPU": 11}, node)
    (True, False)
    """
    return assess(Profile(proportional=policy), requested, node).keeps_proportion


@dataclass(frozen=True, slots=True)
class Assessment:
    """A profile's judgement of one node.

    Args:
        can_serve: whether the node has what is asked for. If not, the rest is meaningless.
        keeps_proportion: whether the reserve for scarce resources is kept; True if the profile has no such policy.
        fit, sra: the scores, from 0 to 100 times the policy's weight; 0 if the profile has no such policy.
        maximum: the upper bound of their sum.
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
    """Judge a node by a profile; ``own`` as for ``fit_score``.

    Everything except the mean of ``fit`` is judged as if only the node's own part had been requested.

    Raises:
        ValueError: an amount is negative.

    >>> verdict = assess(Profile(fit=Fit(), sra=Sra({"PGPU": 1})), {"VCPU": 4}, ScoredNode({"VCPU": 16, "PGPU": 8}))
    >>> int(verdict.fit), int(verdict.sra), int(verdict.maximum), float(verdict.normalised)
    (750, 0, 2000, 37.5)
    """
    scorer = scorer_for(profile, requested, node.allocatable, None if own is None else OwnPart.exactly(own))
    allocatable, used = ([row.get(name, 0) for name in scorer.classes] for row in node)
    return Assessment(
        can_serve=can_serve(requested if own is None else own, node),
        keeps_proportion=scorer.keeps_proportion(allocatable, used),
        fit=scorer.exact_fit(allocatable, used),
        sra=scorer.exact_sra(allocatable),
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
