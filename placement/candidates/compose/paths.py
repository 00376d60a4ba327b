"""Composes a request of hierarchical names in one tree: from providers to the group allocator and back.

Such a name says what an amount has to be nested in: ``numa/0/pcie/1/CUSTOM_GPU`` asks for GPUs on a switch of a NUMA
node. The group allocator sees each provider as a location, and all that is asked for in one group as a requirement.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from placement.allocators.budget import Budget
from placement.allocators.group.objective import Rules
from placement.allocators.group.place import STEPS, Placement, place
from placement.allocators.group.requests import translated
from placement.allocators.group.scorers import ANY_AMOUNT, Phase, Units
from placement.allocators.group.search import STEPS_OF_A_TRY
from placement.allocators.group.tree import (
    Capacity,
    Location,
    Path,
    Placed,
    Requirement,
    join_name,
    requirement_tree,
    split_name,
)
from placement.candidates.compose.free_places import WantedFree
from placement.candidates.compose.locks import Locks
from placement.candidates.compose.proposals import GroupScore, Proposal, Proposals
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerRequest
from placement.domain.planner_tree import NO_STOCKS, PlannerTree, Stock
from placement.domain.tree import Tree

Among = tuple[Mapping[int | None, Sequence[int]], frozenset[int]]
"""The children of each provider, and the providers outside all places that are held exclusively."""


class UnknownLevel(ValueError):
    """A group in a hierarchical name is not a level. Its arguments are the names of the group and the resource."""


class PathComposer:
    """Composes one request in many trees.

    Args:
        request: the request.
        levels: the levels.
        locks: level -> lock class.

    Raises:
        UnknownLevel: a group in a name is not a level.
        ValueError: a name is not valid.
    """

    def __init__(
        self,
        request: PlannerRequest,
        levels: Levels,
        *,
        locks: Mapping[str, str],
    ) -> None:
        self._request = request
        self._levels = levels
        self._locks = Locks(levels.names, locks)
        self._known = {level.lower(): level for level in levels.names}
        self._containers = [self._container(*one) for one in _containers(request)]

    def _container(self, leading: Path, paths: Mapping[str, int], phase: Phase) -> "WantedContainer":
        """Return a container with levels and classes under their canonical names."""
        amounts: dict[str, int] = defaultdict(int)
        written: dict[Path, str] = {(): "/".join([part for step in leading for part in step])}
        for name, amount in paths.items():
            path, last = split_name(name)
            canonical = tuple([(self._level(group, name), label) for group, label in path])
            amounts[join_name(canonical, last)] += amount
            for end in range(1, len(path) + 1):
                written[canonical[:end]] = join_name((*leading, *path[:end]), "").rstrip("/")
        return WantedContainer(amounts, phase, written, requirement_tree(amounts, phase, {}))

    def _level(self, group: str, name: str) -> str:
        level = self._known.get(self._levels.named(group).lower(), "")
        if not level:
            raise UnknownLevel(group, name)
        return level

    @property
    def requested(self) -> dict[str, int]:
        """How much is asked for of each class at the same time."""
        running: Counter[str] = Counter()
        most: Counter[str] = Counter()
        for container in self._containers:
            amounts = Counter[str]()
            for requirement in _walk(container.requirement):
                amounts.update(requirement.amounts)
            if container.phase is Phase.RUNNING:
                running.update(amounts)
            else:
                most |= amounts
        return dict(running | most)

    def plain(self) -> CandidateRequest:
        """Return the request as groups, each of which some provider of a tree must be able to serve.

        A group is named by the beginning of the first name that asks for it. What is asked for outside groups may come
        from different providers.
        """
        wanted: dict[_WantedPortion, str] = {}
        for container in self._containers:
            for path, portion in _portions(container):
                wanted.setdefault(portion, container.written[path] or "/")
        return self._as_groups([(prefix, portion) for portion, prefix in sorted(wanted.items())])

    def parts(self) -> CandidateRequest:
        """Return each part of what runs at the same time as a group, regardless of nesting.

        This relaxes the request: every copy of the request is one of this, so no more copies of the request fit.
        """
        running = [container for container in self._containers if container.phase is Phase.RUNNING]
        portions = [portion for container in running for _path, portion in _portions(container)]
        return self._as_groups([(f"_{number}", portion) for number, portion in enumerate(portions)])

    def _as_groups(self, wanted: Sequence[tuple[str, "_WantedPortion"]]) -> CandidateRequest:
        groups = [
            RequestGroup(
                suffix=suffix,
                resources=dict(amounts),
                required=(frozenset({self._levels.traits[self._levels.names.index(level)]}),) if level else (),
            )
            for suffix, (level, amounts) in wanted
        ]
        return CandidateRequest(
            groups=tuple(groups),
            root_required=self._request.root_required,
            root_forbidden=self._request.root_forbidden,
        )

    @property
    def counted(self) -> tuple[tuple[int, int], ...]:
        """Nothing: groups may meet on one provider."""
        return ()

    @property
    def wanted_free(self) -> tuple[WantedFree, ...]:
        """Nothing: nested groups never want a place to themselves."""
        return ()

    def is_hopeless(self, tree: Tree) -> bool:  # noqa: ARG002 - what is nested has to be looked at
        """Leave it to the search."""
        return False

    def lacks_room(self, tree: Tree, *, members: int = 1) -> bool:  # noqa: ARG002 - what is nested has to be looked at
        """Leave it to the search."""
        return False

    def proposals(self, tree: Tree, details: PlannerTree, budget: Budget) -> Proposals:  # noqa: ARG002 - details say all
        """Return the best way to serve the request in a tree; none if the budget runs out before one is found."""
        children: dict[int | None, list[int]] = defaultdict(list)
        for provider, parent in details.parents.items():
            children[parent].append(provider)
        (usable,) = self._locks.usable([list(details.parents)], details)
        lifted = self._lifted(details)
        root = self._location(details, details.root, (children, frozenset(usable)), lifted)
        ids: dict[Path, int] = {}
        _note(root, (), {name: id_ for id_, name in details.names.items()}, ids)
        of_search = budget.child(STEPS)
        if of_search.left < STEPS_OF_A_TRY:
            return Proposals(complete=False)
        wanted = self._translated(root) if self._request.translate else self._containers
        requirements = [_with_lifted(one.requirement, lifted) for one in wanted]
        rules = Rules(distinct=self._request.distinct or self._request.translate)
        placement = place(root, requirements, rules, budget=of_search)
        found = [self._proposal(details, placement, ids, wanted)] if placement.feasible else []
        return Proposals(found, placement.complete)

    def serves(self, tree: Tree, details: PlannerTree, budget: Budget) -> bool | None:
        """Tell whether there is any way to serve the request in a tree; None if the budget runs out first."""
        return self.proposals(tree, details, budget).verdict

    def _lifted(self, details: PlannerTree) -> frozenset[str]:
        """Return the classes asked for outside groups that the root has none of.

        They may come from any provider of the tree, unless they are asked for inside groups as well.
        """
        outside = {name for one in self._containers for name in one.requirement.amounts}
        every = [one for container in self._containers for one in _walk(container.requirement)]
        inside = {name for one in every if one.level for name in one.amounts}
        return frozenset(outside - inside - details.stocks.get(details.root, NO_STOCKS).keys())

    def _translated(self, root: Location) -> list["WantedContainer"]:
        """Return the containers with the upper groups that their names omit."""
        offered = [join_name(path, name) for path, one in _locations(root, ()) for name in one.capacities]
        return [_translated(container, offered) for container in self._containers]

    def _location(self, details: PlannerTree, provider: int, among: Among, lifted: AbstractSet[str]) -> Location:
        children, usable = among
        position = details.positions[provider]
        own = [self._levels.names[index] for index, here in enumerate(position) if here == provider]
        stocks = details.stocks.get(provider, NO_STOCKS) if provider in usable else {}
        name = details.names[provider]
        capacities = {resource_class: _capacity(stock) for resource_class, stock in stocks.items()}
        # A class that may come from anywhere is a location of its own, wherever it is.
        places = [Location(name, _anywhere(one), {one: capacities[one]}) for one in sorted(lifted & capacities.keys())]
        inside = [self._location(details, child, among, lifted) for child in children[provider]]
        kept = {one: capacity for one, capacity in capacities.items() if one not in lifted}
        return Location(name, own[-1] if own else "", kept, (*places, *inside))

    def _proposal(
        self,
        details: PlannerTree,
        placement: Placement,
        ids: Mapping[Path, int],
        containers: Sequence["WantedContainer"],
    ) -> Proposal:
        amounts: dict[int, dict[str, int]] = defaultdict(dict)
        for (path, name), amount in placement.taken.items():
            amounts[ids[path]][name] = amount
        touched = details.places.around(amounts)
        self._locks.taken(details, list(amounts), (), amounts)
        return Proposal(
            root=details.root,
            amounts=dict(amounts),
            mappings=_mappings(placement, ids, containers),
            touched=details.places.touched(touched),
            group_score=_group_score(placement),
        )


@dataclass(frozen=True, slots=True)
class WantedContainer:
    """What one container asks for.

    Args:
        amounts: amounts of classes by hierarchical name, with the levels' canonical names.
        phase: when it runs.
        written: how the request writes the beginnings of names, by path; what translation adds is missing.
        requirement: the same amounts as a tree.
    """

    amounts: Mapping[str, int]
    phase: Phase
    written: Mapping[Path, str]
    requirement: Requirement


_WantedPortion = tuple[str, tuple[tuple[str, int], ...]]
"""A level, and amounts that one provider of it serves."""


def _portions(container: WantedContainer) -> Iterator[tuple[Path, _WantedPortion]]:
    """Yield what single providers serve, by path; outside groups, each class by itself."""
    for path, one in _by_path(container.requirement, ()):
        amounts = tuple(sorted(one.amounts.items()))
        for portion in [amounts] if path else [(each,) for each in amounts]:
            if portion:
                yield path, (one.level, portion)


def _containers(request: PlannerRequest) -> Iterator[tuple[Path, Mapping[str, int], Phase]]:
    """Yield the containers of a request: the prefix of their names in the answer, what they ask for, when they run."""
    yield (), request.paths, Phase.RUNNING
    for number, paths in enumerate(request.containers, start=1):
        yield (("containers", str(number)),), paths, Phase.RUNNING
    for number, paths in enumerate(request.init_containers):
        yield (("init_containers", str(number)),), paths, Phase.INITIALISATION


def _translated(container: WantedContainer, offered: Sequence[str]) -> WantedContainer:
    new_names = translated(container.amounts, offered)
    written: dict[Path, str] = {(): container.written[()]}
    for old_name, new_name in new_names.items():
        old, new = split_name(old_name)[0], split_name(new_name)[0]
        left = len(old)
        for end in range(len(new), 0, -1):
            if left and new[end - 1] == old[left - 1]:
                written[new[:end]] = container.written[old[:left]]
                left -= 1
    amounts = {new_names[name]: amount for name, amount in container.amounts.items()}
    return WantedContainer(amounts, container.phase, written, requirement_tree(amounts, container.phase, {}))


def _anywhere(resource_class: str) -> str:
    """Return the level of locations that have a class, wherever they are; no real level has such a name."""
    return f"any {resource_class}"


def _with_lifted(requirement: Requirement, lifted: AbstractSet[str]) -> Requirement:
    """Return an outermost requirement that takes some classes from wherever they are."""
    parts = [
        Requirement(name, _anywhere(name), {name: amount}, phase=requirement.phase)
        for name, amount in sorted(requirement.amounts.items())
        if name in lifted
    ]
    kept = {name: amount for name, amount in requirement.amounts.items() if name not in lifted}
    return replace(requirement, amounts=kept, parts=(*requirement.parts, *parts))


def _group_score(placement: Placement) -> GroupScore | None:
    objective = placement.objective
    return None if objective is None else GroupScore(float(objective.score), float(objective.total))


def _mappings(
    placement: Placement, ids: Mapping[Path, int], containers: Sequence[WantedContainer]
) -> dict[str, tuple[int, ...]]:
    """Return the providers that serve each group, by the beginning of its names as they are written."""
    found: dict[str, tuple[int, ...]] = {}
    for placed, container in zip(placement.placed, containers, strict=True):
        top = placed.requirement.amounts
        outside = [ids[part.path] for part in placed.parts if part.requirement.level.startswith(_anywhere(""))]
        if serving := [*([ids[placed.path]] if top else []), *outside]:
            found[container.written[()]] = tuple(dict.fromkeys(serving))
        for path, one in _placed_by_path(placed, ()):
            if path and path in container.written:
                found[container.written[path]] = (ids[one.path],)
    return found


def _capacity(stock: Stock) -> Capacity:
    is_free = stock.min_unit <= 1 and stock.step_size == 1 and stock.max_unit >= stock.capacity
    units = ANY_AMOUNT if is_free else Units(stock.min_unit, stock.max_unit, stock.step_size)
    return Capacity(stock.capacity, stock.used, units)


def _walk(requirement: Requirement) -> Iterator[Requirement]:
    yield requirement
    for part in requirement.parts:
        yield from _walk(part)


def _by_path(requirement: Requirement, path: Path) -> Iterator[tuple[Path, Requirement]]:
    """Yield requirements by path."""
    yield path, requirement
    for part in requirement.parts:
        yield from _by_path(part, (*path, (part.level, part.label)))


def _placed_by_path(placed: Placed, path: Path) -> Iterator[tuple[Path, Placed]]:
    yield path, placed
    for part in placed.parts:
        yield from _placed_by_path(part, (*path, (part.requirement.level, part.requirement.label)))


def _locations(location: Location, path: Path) -> Iterator[tuple[Path, Location]]:
    """Yield the locations that are of a level with their paths, passing through those that are not."""
    yield path, location
    for child in location.children:
        yield from _locations(child, (*path, (child.level, child.name)) if child.level else path)


def _note(location: Location, path: Path, by_name: Mapping[str, int], ids: dict[Path, int]) -> None:
    """Note which provider each location stands for."""
    ids[path] = by_name[location.name]
    for child in location.children:
        _note(child, (*path, (child.level, child.name)), by_name, ids)
