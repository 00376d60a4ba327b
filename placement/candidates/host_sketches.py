"""Hosts that the planner can tell apart only by id: what it proposes in one of them, it proposes in the others.

A cloud has many hosts of a few models, and a gang is placed on many of them at a time. To compare hosts, each is
sketched like the trees of a search (``canonical``), but with everything that the planner knows of it, including what is
free and used. The same form gives the same result in any snapshot, so what is kept by form can never be stale.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from placement.allocators.natural_order import natural_order
from placement.candidates.canonical import CanonicalForm, Memo
from placement.candidates.compose.proposals import Lock, Proposal, Proposals
from placement.cloud.derived import TIMELESS
from placement.domain.overlay import Overlay
from placement.domain.search_plan import Plan
from placement.domain.tree import PlannerTree, Tree

if TYPE_CHECKING:
    from placement.candidates.planner.question import PlannerQuestion


class HostSketch(NamedTuple):
    """A host as a sketch: its canonical form, and the provider that each number in it stands for."""

    form: CanonicalForm
    providers: Sequence[int]


def host_sketch(plans: Sequence[Plan], trees: Sequence[Tree], details: PlannerTree) -> HostSketch:
    """Sketch a host with the providers that share with it; forms compare only for the same levels of places.

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
    return HostSketch(form, providers)


def _asked(plan: Plan, tree: Tree, providers: Sequence[int], numbers: Mapping[int | None, int]) -> CanonicalForm:
    return (
        tuple([tuple([numbers[provider] for provider in row]) for row in tree.options]),
        tuple([tree.met.get(provider, 0) for provider in providers]) if plan.trait_sets else (),
        tuple([tree.room.get((provider, name)) for name in plan.contended for provider in providers]),
    )


def read_off(proposal: Proposal, model: HostSketch, host: HostSketch) -> Proposal:
    """Read a proposal off for another host of the same form."""
    numbers = dict(zip(model.providers, host.providers, strict=True))
    return Proposal(
        root=numbers[proposal.root],
        amounts={numbers[provider]: amounts for provider, amounts in proposal.amounts.items()},
        mappings={suffix: tuple([numbers[id_] for id_ in served]) for suffix, served in proposal.mappings.items()},
        touched=proposal.touched,
        locks=tuple([Lock(numbers[lock.provider], lock.resource_class) for lock in proposal.locks]),
        group_score=proposal.group_score,
    )


BYTES_OF_PROVIDER = 700
"""What a host takes for each of its providers, its form and the proposals in it included."""


class FoundInHost(NamedTuple):
    """What a host gives, and the host that gave it."""

    host: HostSketch
    proposals: Proposals


class FormComposer:
    """Composes the proposals for one request, tree by tree.

    What earlier requests found in hosts of a form is kept, unless fragmentation counts: it depends on the whole cloud.

    Args:
        question: the request.
        overlay: the assumed changes.
    """

    def __init__(self, question: "PlannerQuestion", overlay: Overlay) -> None:
        self._details = question.details
        self._budget = question.budget
        self._prepared, self._composer = question.prepared, question.prepared.composer
        self._kept = None if question.cloud.judge else question.cloud.kept.derived
        self._overlay = overlay
        self._models: Memo[FoundInHost] = Memo()
        self.known: dict[int, PlannerTree] = {}
        """The trees composed in, by root id."""
        self.exhausted: dict[int, bool] = {}
        """By root, the trees where nothing was found, and whether that is proved."""
        self._cut_off: set[int] = set()

    @property
    def complete(self) -> bool:
        """Whether the last search in each tree ran to its end."""
        return not self._cut_off

    def composed(self, trees: Sequence[Tree]) -> Iterator[Sequence[Proposal]]:
        """Yield the proposals of each tree."""
        for tree, as_it_is in zip(trees, self._details.of(trees), strict=True):
            details = as_it_is.under(self._overlay)
            yield self.found(tree, details, is_as_it_is=details is as_it_is)

    def rule_out(self, root: int) -> None:
        """Record that a tree is exhausted."""
        self.exhausted[root] = True
        self._cut_off.discard(root)

    def found(self, tree: Tree, details: PlannerTree, *, is_as_it_is: bool = False) -> Sequence[Proposal]:
        """Return the proposals in one tree with these details, or those that were found in one of the same form."""
        kept = self._kept
        if kept is None and not is_as_it_is:
            return self._noted(details, self._composer.proposals(tree, details, self._budget()))
        host = host_sketch([self._prepared.plan], [tree], details)
        name = "proposals", self._prepared.written, host.form
        model = self._models.get(host.form) if is_as_it_is else None
        if model is None and kept is not None and (earlier := kept.find(TIMELESS, name)) is not None:
            model = earlier.value
        if model is None:
            model = FoundInHost(host, self._composer.proposals(tree, details, self._budget()))
            # If it was cut off, a longer search might find more.
            if kept is not None and model.proposals.complete:
                kept.keep(TIMELESS, name, model, size=BYTES_OF_PROVIDER * len(host.providers))
            if is_as_it_is:
                # Even if it was cut off: to search each tree of this form would use up as many steps again.
                self._models.remember(host.form, model)
        proposals = self._noted(details, model.proposals)
        return proposals if model.host is host else [read_off(each, model.host, host) for each in proposals]

    def _noted(self, details: PlannerTree, result: Proposals) -> Sequence[Proposal]:
        """Record what was found in a tree, and return it."""
        root = details.root
        self.known[root] = details
        (self._cut_off.discard if result.complete else self._cut_off.add)(root)
        if not result.found:
            self.exhausted[root] = result.complete
        return result.found
