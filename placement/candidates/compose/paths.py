"""Composes a request of hierarchical names in one tree: from providers to the group allocator and back.

Such a name says what an amount has to be nested in: ``numa/0/pcie/1/CUSTOM_GPU`` asks for GPUs on a switch of a NUMA
node. The group allocator sees each provider as a location, and all that is asked for in one group as a requirement,
labelled by how the request writes the beginning of its names.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from placement.allocators import Budget
from placement.allocators.group import NamedGroup, split_name
from placement.allocators.group.locations import Rules
from placement.allocators.group.place import STEPS, Placement, place
from placement.allocators.group.search import STEPS_OF_A_TRY
from placement.allocators.group.tree import (
    ANY_AMOUNT,
    ANYWHERE,
    Capacity,
    Location,
    Path,
    Phase,
    Requirement,
    Units,
    translated,
)
from placement.candidates.compose.proposals import GroupScore, Proposal, ProposalComposer, Proposals
from placement.domain.device_types import enumerated_traits, is_enumerated
from placement.domain.planner_request import ContainerPaths, PlannerRequest
from placement.domain.search_plan import CandidateRequest, RequestGroup, plan_for
from placement.domain.tree import NO_STOCKS, Levels, PlannerTree, Tree, upwards

MAX_DEPTH = 100
"""A tree that is deeper is left out, and the answer says that it is incomplete. Real ones have at most ten levels."""


class UnknownLevel(ValueError):
    """A group in a hierarchical name is not a level. Its arguments are the names of the group and the resource."""


class PathComposer(ProposalComposer):
    """Composes one request in many trees; ValueError for a name that is not valid, UnknownLevel for one of no level."""

    def __init__(self, request: PlannerRequest, levels: Levels, *, locks: Mapping[str, str]) -> None:
        super().__init__(request, levels, locks=locks)
        self._level_names = {level.lower(): level for level in levels.names}
        self._any_of: dict[str, list[frozenset[str]]] = defaultdict(list)
        """Label -> the sets of traits of which a group needs one each."""
        self._containers = [self._requirement(container) for container in request.all_paths()]
        running, initial = Counter[str](), Counter[str]()
        for container in self._containers:
            amounts = Counter[str]()
            for requirement in _walk(container):
                amounts.update(requirement.amounts)
            if container.phase is Phase.RUNNING:
                running.update(amounts)
            else:
                initial |= amounts
        self.requested = dict(running | initial)
        if not self.requested:
            raise ValueError("There must be an amount of a resource.")
        self.plan = plan_for(self._plain())

    def _requirement(self, container: ContainerPaths) -> Requirement:
        """Return what one container asks for, with levels under their canonical names."""
        phase = Phase.INITIALISATION if container.is_initial else Phase.RUNNING
        root, labels = NamedGroup(), dict[Path, str]({(): container.prefix})
        for name, amount in container.paths.items():
            words, last = split_name(name)
            path, label, group = words[:0], container.prefix, root
            for word, index in words:
                label = f"{label}/{word}/{index}".lstrip("/")
                path = (*path, (self._level(word, name), index))
                labels.setdefault(path, label)
                group = group.inside.setdefault(path[-1], NamedGroup())
            if is_enumerated(last):
                self._any_of[labels[path]].append(enumerated_traits(last, amount))
            else:
                group.base[last] = group.base.get(last, 0) + amount

        def requirement(group: NamedGroup, path: Path) -> Requirement:
            parts = tuple([requirement(inner, (*path, step)) for step, inner in group.inside.items()])
            return Requirement(labels[path], path[-1][0] if path else "", group.base, parts, phase)

        return requirement(root, ())

    def _level(self, group: str, name: str) -> str:
        level = self._level_names.get(self.levels.named(group).lower(), "")
        if not level:
            raise UnknownLevel(group, name)
        return level

    def _plain(self) -> CandidateRequest:
        """Return groups that some provider of a tree each must serve, named by the first name that asks for it."""
        labels: dict[_WantedPortion, str] = {}
        for container in self._containers:
            for portion, label in self._portions(container):
                labels.setdefault(portion, label or "/")
        return self._as_groups([(label, portion) for portion, label in sorted(labels.items(), key=repr)])

    def parts(self) -> CandidateRequest:
        """Return each part of what runs at the same time as a group, not nested: as many copies fit, or more."""
        running = [container for container in self._containers if container.phase is Phase.RUNNING]
        portions = [portion for container in running for portion, _label in self._portions(container)]
        return self._as_groups([(f"_{number}", portion) for number, portion in enumerate(portions)])

    def _portions(self, container: Requirement) -> Iterator[tuple["_WantedPortion", str]]:
        """Yield what single providers serve, with its label; outside groups, each class by itself."""
        for requirement in _walk(container):
            amounts = tuple(sorted(requirement.amounts.items()))
            any_of = tuple(self._any_of.get(requirement.label, ()))
            for portion in [amounts] if requirement is not container else [(portion,) for portion in amounts]:
                if portion:
                    yield _WantedPortion(requirement.level, portion, any_of), requirement.label

    def _as_groups(self, portions: Sequence[tuple[str, "_WantedPortion"]]) -> CandidateRequest:
        trait_of = dict(zip(self.levels.names, self.levels.traits, strict=True))
        groups = [
            RequestGroup(
                suffix=suffix,
                resources=dict(portion.amounts),
                required=(*([frozenset({trait_of[portion.level]})] if portion.level else []), *portion.any_of),
            )
            for suffix, portion in portions
        ]
        return CandidateRequest(
            groups=tuple(groups), root_required=self.request.root_required, root_forbidden=self.request.root_forbidden
        )

    def proposals(self, tree: Tree, details: PlannerTree, budget: Budget) -> Proposals:  # noqa: ARG002 - details say all
        """Return the best way to serve the request in a tree; none if the budget runs out before one is found."""
        of_search, parents = budget.child(STEPS), details.parents
        # The Group Allocator follows a tree by recursion.
        is_too_deep = len(parents) > MAX_DEPTH and any(
            next(islice(upwards(provider, parents), MAX_DEPTH, None), None) is not None for provider in parents
        )
        if of_search.remaining < STEPS_OF_A_TRY or is_too_deep:
            return Proposals(complete=False)
        (usable,) = self._locks.usable([list(details.parents)], details)
        root, ids = _locations(details, self.levels, frozenset(usable))
        requirements = [self._in_tree(container, details, ids) for container in self._containers]
        if self.request.translate:
            requirements = [translated(requirement, root) for requirement in requirements]
        at_root = details.stocks.get(details.root, NO_STOCKS).keys()
        requirements = [_with_parts_anywhere(requirement, at_root) for requirement in requirements]
        distinct = self.request.distinct or self.request.translate
        placement = place(root, requirements, Rules(distinct=distinct, levels=self.levels.names), budget=of_search)
        return Proposals([self._proposal(details, placement, ids)] if placement.feasible else [], placement.complete)

    def _in_tree(self, requirement: Requirement, details: PlannerTree, ids: Mapping[Path, int]) -> Requirement:
        """Return a requirement with all parts restricted to the locations that have their traits."""
        parts = tuple([self._in_tree(part, details, ids) for part in requirement.parts])
        if not (any_of := self._any_of.get(requirement.label)):
            return replace(requirement, parts=parts)
        owned = {path: details.traits.get(provider, frozenset()) for path, provider in ids.items()}
        only = frozenset([path for path, traits in owned.items() if not any(map(traits.isdisjoint, any_of))])
        return replace(requirement, parts=parts, only=only)

    def _proposal(self, details: PlannerTree, placement: Placement, ids: Mapping[Path, int]) -> Proposal:
        amounts: dict[int, dict[str, int]] = defaultdict(dict)
        for (path, name), amount in placement.taken.items():
            amounts[ids[path]][name] = amount
        objective, touched = placement.objective, details.touched(amounts)
        self._locks.taken(details, list(amounts), (), amounts)
        return Proposal(
            root=details.root,
            amounts=dict(amounts),
            mappings=_mappings(placement, ids),
            touched=touched,
            group_score=None if objective is None else GroupScore(float(objective.score), float(objective.total)),
        )


class _WantedPortion(NamedTuple):
    """Amounts that one provider of a level serves, and the sets of traits of which it has one each."""

    level: str
    amounts: tuple[tuple[str, int], ...]
    any_of: tuple[frozenset[str], ...]


def _locations(details: PlannerTree, levels: Levels, usable: Collection[int]) -> tuple[Location, Mapping[Path, int]]:
    """Return a tree as locations, and the provider that each of them stands for."""
    ids: dict[Path, int] = {}
    children: dict[int | None, list[int]] = defaultdict(list)
    for provider, parent in details.parents.items():
        children[parent].append(provider)

    def location(provider: int, path: Path) -> Location:
        ids[path] = provider
        stocks, capacities = details.stocks.get(provider, NO_STOCKS), dict[str, Capacity]()
        for name, stock in stocks.items() if provider in usable else ():
            is_free = stock.min_unit <= 1 and stock.step_size == 1 and stock.max_unit >= stock.capacity
            units = ANY_AMOUNT if is_free else Units(stock.min_unit, stock.max_unit, stock.step_size)
            capacities[name] = Capacity(stock.capacity, stock.used, units)
        inside = [location(child, (*path, step(child))) for child in children[provider]]
        level, own_name = step(provider)
        return Location(own_name, level, capacities, tuple(inside))

    def step(provider: int) -> tuple[str, str]:
        at = zip(levels.names, details.positions[provider], strict=True)
        own = ["", *[level for level, anchor in at if anchor == provider]]
        return own[-1], details.names[provider]

    return location(details.root, ()), ids


def _with_parts_anywhere(requirement: Requirement, at_root: AbstractSet[str]) -> Requirement:
    """Return an outermost requirement that takes classes that the root lacks from wherever they are."""
    amounts, phase = requirement.amounts, requirement.phase
    parts = [Requirement("", ANYWHERE, {name: amounts[name]}, phase=phase) for name in sorted(amounts.keys() - at_root)]
    kept = {name: amount for name, amount in amounts.items() if name in at_root}
    return replace(requirement, amounts=kept, parts=(*requirement.parts, *parts))


def _mappings(placement: Placement, ids: Mapping[Path, int]) -> dict[str, tuple[int, ...]]:
    """Return the providers that serve each group, by the beginning of its names as they are written."""
    served: dict[str, tuple[int, ...]] = {}
    for container in placement.placed:
        at_root = [ids[()]] if container.requirement.amounts else []
        anywhere = [ids[part.path] for part in container.parts if part.requirement.level == ANYWHERE]
        if outside := dict.fromkeys([*at_root, *anywhere]):
            served[container.requirement.label] = tuple(outside)
        for part in container.walk():
            # Outer groups that were filled in have no label.
            if part is not container and part.requirement.label:
                served[part.requirement.label] = (ids[part.path],)
    return served


def _walk(requirement: Requirement) -> Iterator[Requirement]:
    yield requirement
    for part in requirement.parts:
        yield from _walk(part)
