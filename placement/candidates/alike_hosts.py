"""Hosts that the planner can tell apart only by id: what it proposes in one of them, it proposes in the others.

A cloud has many hosts of a few models, and a gang is placed on many of them at a time.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from placement.allocators.natural_order import natural_order
from placement.candidates.canonical import CanonicalForm
from placement.candidates.compose.proposals import Lock, Proposal
from placement.domain.planner_tree import PlannerTree
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree


class DrawnHost(NamedTuple):
    """A host drawn without ids: its form, and the provider that each number in it stands for."""

    form: CanonicalForm
    providers: Sequence[int]


def drawn(plans: Sequence[Plan], trees: Sequence[Tree], details: PlannerTree) -> DrawnHost:
    """Draw a host with the providers that share with it; forms compare only for the same levels of places.

    Nothing about ids and names matters but their order. Providers are numbered by their ids.

    Args:
        plans: what is asked for on it.
        trees: which of its providers can serve, for each plan.
        details: the host; the same for all plans.
    """
    providers = sorted(details.parents)
    numbers: dict[int | None, int] = {provider: number for number, provider in enumerate(providers)}
    asked = [_asked(plan, tree, providers, numbers) for plan, tree in zip(plans, trees, strict=True)]
    foreign, held = details.foreign_providers, details.held
    form = (
        natural_order([details.names[provider] for provider in providers]),
        tuple([numbers.get(parent) for parent in map(details.parents.get, providers)]),
        tuple(map(details.traits.get, providers)),
        tuple(map(details.stocks.get, providers)),
        (numbers[details.root], tuple([provider in foreign for provider in providers])) if foreign else None,
        tuple([provider in held for provider in providers]) if held else None,
        *asked,
    )
    return DrawnHost(form, providers)


def form_of(plan: Plan, tree: Tree, details: PlannerTree) -> CanonicalForm:
    """Return the form of a host for a single plan."""
    return drawn([plan], [tree], details).form


def _asked(plan: Plan, tree: Tree, providers: Sequence[int], numbers: Mapping[int | None, int]) -> CanonicalForm:
    return (
        tuple([tuple([numbers[provider] for provider in row]) for row in tree.options]),
        tuple([tree.met.get(provider, 0) for provider in providers]) if plan.trait_sets else (),
        tuple([tree.room.get((provider, name)) for name in plan.contended for provider in providers]),
    )


def moved(proposal: Proposal, source: DrawnHost, target: DrawnHost) -> Proposal:
    """Translate a proposal into another host of the same form."""
    numbers = dict(zip(source.providers, target.providers, strict=True))
    return Proposal(
        root=numbers[proposal.root],
        amounts={numbers[provider]: amounts for provider, amounts in proposal.amounts.items()},
        mappings={suffix: tuple([numbers[one] for one in served]) for suffix, served in proposal.mappings.items()},
        touched=proposal.touched,
        locks=tuple([Lock(numbers[lock.provider], lock.resource_class) for lock in proposal.locks]),
        group_score=proposal.group_score,
    )
