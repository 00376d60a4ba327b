"""The definitions of the strategy fit's scores, written plainly: what the compiled form has to give."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from placement.allocators import best_match, exact, natural_key
from placement.allocators.ranking_profile import ScoredNode, asked_amounts
from placement.allocators.strategy_fit import MAX_NODE_SCORE, Fit, Profile, Proportional, Sra

NodeAmounts = Mapping[str, int]


def idle(node: ScoredNode, name: str) -> int:
    """Return how much of a class is idle; negative if usage exceeds capacity."""
    return node.allocatable.get(name, 0) - node.used.get(name, 0)


def can_serve(requested: NodeAmounts, node: ScoredNode) -> bool:
    """Tell whether the node has everything that is asked for, configured or not; scores do not tell (RS-16, RS-22)."""
    return all(amount <= idle(node, name) for name, amount in asked_amounts(requested).items())


def fit_score(fit: Fit, requested: NodeAmounts, node: ScoredNode, own: NodeAmounts | None = None) -> Fraction:
    """Score how well a request fits a node: from 0 to 100 x ``fit.weight``, exactly."""
    parts, weights = Fraction(), Fraction()
    for name, amount in asked_amounts(requested).items():
        pattern = best_match(fit.resources, name)
        if pattern is None or not fit.resources[pattern].weight:
            continue
        preference = fit.resources[pattern]
        weights += exact(preference.weight)
        taken = amount if own is None else own.get(name, 0)
        if taken and node.allocatable.get(name, 0) > 0:
            left = idle(node, name) - taken
            if left < 0:
                if own is None:
                    return Fraction()
                continue
            least = Fraction(left, node.allocatable[name])
            parts += exact(preference.weight) * (least if preference.type == "LeastAllocated" else 1 - least)
    return MAX_NODE_SCORE * exact(fit.weight) * parts / weights if weights else Fraction()


def sra_score(sra: Sra, requested: NodeAmounts, node: ScoredNode) -> Fraction:
    """Score how well a node keeps scarce resources free: from 0 to 100 x ``sra.weight``, exactly."""
    asked = asked_amounts(requested)
    is_upstream = sra.mode == "upstream"
    if is_upstream and not all(node.allocatable.get(name, 0) > 0 for name in asked):
        return Fraction()
    counting = [
        name for name in node.allocatable if node.allocatable.get(name, 0) > 0 and (is_upstream or name not in asked)
    ]
    present = {best_match(sra.resources, name) for name in counting}
    everything = sum(map(exact, sra.resources.values()), Fraction())
    avoided = sum((exact(weight) for name, weight in sra.resources.items() if name not in present), Fraction())
    return MAX_NODE_SCORE * exact(sra.weight) * avoided / everything if everything else Fraction()


def keeps_proportion(policy: Proportional, requested: NodeAmounts, node: ScoredNode) -> bool:
    """Tell whether a node that serves the request keeps enough idle for its idle primary resources."""
    asked = asked_amounts(requested)
    primaries = {name: best_match(policy.reserve, name) for name in {*asked, *node.allocatable}}
    if policy.exempt == "all" and any(primaries[name] for name in asked):
        return True
    return all(
        _leaves(node, asked, primary=name, secondary=secondary, ratio=exact(units))
        for name, pattern in primaries.items()
        if pattern is not None and node.allocatable.get(name, 0) > 0
        for secondary, units in policy.reserve[pattern].items()
    )


def _leaves(node: ScoredNode, asked: NodeAmounts, *, primary: str, secondary: str, ratio: Fraction) -> bool:
    """Tell whether enough of a secondary stays idle for one primary."""
    units, taken = asked.get(primary, 0), asked.get(secondary, 0)
    if units and taken <= units * ratio:
        # The reserve was for these very units. Without this, a node below its proportion already (because an inventory
        # shrank) would refuse even the requests that the reserve is for.
        return True
    return idle(node, secondary) - taken >= max(0, idle(node, primary) - units) * ratio


@dataclass(frozen=True)
class Assessment:
    """A profile's judgement of one node. Without a policy, its score is 0 and the proportion kept."""

    keeps_proportion: bool
    fit: Fraction
    sra: Fraction
    maximum: Fraction

    @property
    def total(self) -> Fraction:
        return self.fit + self.sra

    @property
    def normalised(self) -> Fraction:
        return MAX_NODE_SCORE * self.total / self.maximum if self.maximum else Fraction()


def assess(profile: Profile, requested: NodeAmounts, node: ScoredNode, own: NodeAmounts | None = None) -> Assessment:
    """Judge a node, exactly; ``own`` is what it provides of the request itself, by default everything."""
    given, policy = requested if own is None else own, profile.proportional
    return Assessment(
        keeps_proportion=policy is None or keeps_proportion(policy, given, node),
        fit=fit_score(profile.fit, requested, node, own) if profile.fit else Fraction(),
        sra=sra_score(profile.sra, given, node) if profile.sra else Fraction(),
        maximum=profile.maximum,
    )


def best_first(profile: Profile, requested: NodeAmounts, nodes: Mapping[str, ScoredNode]) -> list[str]:
    """Return the names of the nodes that can serve the request, the best first, without those that are filtered."""
    verdicts = {name: assess(profile, requested, node) for name, node in nodes.items() if can_serve(requested, node)}
    filters = profile.proportional is not None and profile.proportional.mode == "filter"
    kept = {name: said for name, said in verdicts.items() if said.keeps_proportion or not filters}
    return sorted(kept, key=lambda name: (not kept[name].keeps_proportion, -kept[name].total, natural_key(name)))
