"""Hosts that the planner cannot tell apart but for ids: what is proposed in one of them is proposed in the others.

A cloud has many hosts of a few models, and gangs go to many of them at a time.
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
    """A host drawn without ids: its form, and the providers that the numbers in it stand for."""

    form: CanonicalForm
    providers: Sequence[int]


def drawn(plans: Sequence[Plan], trees: Sequence[Tree], details: PlannerTree) -> DrawnHost:
    """Draw a host, with those that share with it; of places only those of the same levels are compared.

    Of ids and of names nothing matters but their order. Providers are numbered by their ids.

    Args:
        plans: what is asked for there.
        trees: who can serve it, for each plan.
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
    """Return the form of a host of which one thing is asked."""
    return drawn([plan], [tree], details).form


def _asked(plan: Plan, tree: Tree, providers: Sequence[int], numbers: Mapping[int | None, int]) -> CanonicalForm:
    return (
        tuple([tuple([numbers[provider] for provider in row]) for row in tree.options]),
        tuple([tree.met.get(provider, 0) for provider in providers]) if plan.trait_sets else (),
        tuple([tree.room.get((provider, name)) for name in plan.contended for provider in providers]),
    )


def moved(proposal: Proposal, source: DrawnHost, target: DrawnHost) -> Proposal:
    """Return a proposal as it is in another host of the same form."""
    numbers = dict(zip(source.providers, target.providers, strict=True))
    return Proposal(
        root=numbers[proposal.root],
        amounts={numbers[provider]: amounts for provider, amounts in proposal.amounts.items()},
        mappings={suffix: tuple([numbers[one] for one in served]) for suffix, served in proposal.mappings.items()},
        touched=proposal.touched,
        locks=tuple([Lock(numbers[lock.provider], lock.resource_class) for lock in proposal.locks]),
        group_score=proposal.group_score,
    )
