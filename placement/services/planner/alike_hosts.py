"""Hosts that the planner cannot tell apart but for ids: what is proposed in one of them is proposed in the others.

A cloud has many hosts of a few models, and gangs go to many of them at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from placement.allocators.natural_order import natural_key
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
    """Draw a host that nobody shares with.

    Providers are numbered in the natural order of their names: that is all that matters of them, as their order is all
    that matters of ids.

    Args:
        plans: what is asked for there.
        trees: who can serve it, for each plan.
        details: the host; the same for all plans.
    """
    names = details.names
    providers = sorted(details.parents, key=lambda provider: (natural_key(names[provider]), provider))
    numbers = {provider: number for number, provider in enumerate(providers)}
    asked = [_asked(plan, tree, providers, numbers) for plan, tree in zip(plans, trees, strict=True)]
    form = (
        tuple([numbers[provider] for provider in sorted(providers)]),
        tuple([numbers.get(details.parents[provider] or 0) for provider in providers]),
        tuple([details.traits.get(provider) for provider in providers]),
        tuple([tuple(sorted(details.stocks.get(provider, {}).items(), key=_class)) for provider in providers]),
        tuple([tuple([numbers.get(place or 0) for place in details.positions[one]]) for one in providers]),
        *asked,
    )
    return DrawnHost(form, providers)


def _class(stock: tuple[str, object]) -> str:
    return stock[0]


def _asked(plan: Plan, tree: Tree, providers: Sequence[int], numbers: Mapping[int, int]) -> CanonicalForm:
    return (
        tuple([tuple([numbers[provider] for provider in row]) for row in tree.options]),
        tuple([tree.met.get(provider, 0) for provider in providers]) if plan.trait_sets else (),
        tuple([tree.room.get((provider, name)) for name in plan.contended for provider in providers]),
    )


def moved(proposal: Proposal, source: DrawnHost, target: DrawnHost) -> Proposal:
    """Return a proposal as it is in another host of the same form."""
    numbers = dict(zip(source.providers, target.providers, strict=True))
    return replace(
        proposal,
        root=numbers[proposal.root],
        amounts={numbers[provider]: amounts for provider, amounts in proposal.amounts.items()},
        mappings={suffix: tuple([numbers[one] for one in served]) for suffix, served in proposal.mappings.items()},
        locks=tuple([Lock(numbers[lock.provider], lock.resource_class) for lock in proposal.locks]),
    )
