"""Composes a request of hierarchical names in one tree: from providers to the Group Allocator and back."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from placement.allocators.budget import Budget
from placement.allocators.group.names import requirement_tree
from placement.allocators.group.place import STEPS, Placement, place
from placement.allocators.group.rules import Rules
from placement.allocators.group.scorers import ANY_AMOUNT, Phase, Units
from placement.allocators.group.search import STEPS_OF_A_TRY
from placement.allocators.group.tree import Capacity, Location, Path, Placed, Requirement
from placement.candidates.compose.device_parts import Levels
from placement.candidates.compose.locks import Locks
from placement.candidates.compose.proposals import Proposal, Proposals
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.planner_request import PlannerRequest
from placement.domain.planner_tree import PlannerTree, Stock
from placement.domain.tree import Tree

Among = tuple[Mapping[int | None, Sequence[int]], frozenset[int]]
"""(the children of each provider, the providers that are not inside a place that somebody holds exclusively)."""


class UnknownLevel(ValueError):
    """A group in a hierarchical name is no level. Its arguments are the name of the group and the resource's name."""


class PathComposer:
    """Composes one request in many trees.

    Args:
        request: the request.
        levels: the levels.
        base: the resource classes that the last parts of names mean; other parts are classes themselves.
        locks: level -> lock class.

    Raises:
        UnknownLevel: a group in a name is no level.
        ValueError: a name is not valid.
    """

    def __init__(
        self,
        request: PlannerRequest,
        levels: Levels,
        *,
        base: Mapping[str, str],
        locks: Mapping[str, str],
    ) -> None:
        self._request = request
        self._levels = levels
        self._base = base
        self._locks = Locks(levels.names, locks)
        self._known = {level.lower(): level for level in levels.names}
        self._written = requirement_tree(request.paths, Phase.RUNNING, {})
        self._requirement = self._in_classes(self._written)

    def _in_classes(self, requirement: Requirement) -> Requirement:
        """Return a requirement with levels and classes as they are called here."""
        level = self._known.get(self._levels.named(requirement.level).lower(), "") if requirement.level else ""
        if requirement.level and not level:
            raise UnknownLevel(
                requirement.level, next(name for name in self._request.paths if requirement.level in name)
            )
        amounts: dict[str, int] = defaultdict(int)
        for name, amount in requirement.amounts.items():
            amounts[self._base.get(name, name)] += amount
        return replace(
            requirement, level=level, amounts=amounts, parts=tuple([self._in_classes(p) for p in requirement.parts])
        )

    @property
    def requested(self) -> dict[str, int]:
        """How much is asked for of each class."""
        found: dict[str, int] = defaultdict(int)
        for requirement in _walk(self._requirement):
            for name, amount in requirement.amounts.items():
                found[name] += amount
        return dict(found)

    def plain(self) -> CandidateRequest:
        """Return the request as groups, each of which some provider of a tree must be able to serve.

        A group is named by the beginning of the first name that asks for it.
        """
        wanted: dict[tuple[str, tuple[tuple[str, int], ...]], str] = {}
        for prefix, one in _by_prefix(self._requirement, self._written):
            if one.amounts:
                wanted.setdefault((one.level, tuple(sorted(one.amounts.items()))), prefix or "/")
        groups = [
            RequestGroup(
                suffix=prefix,
                resources=dict(amounts),
                required=(frozenset({self._levels.traits[self._levels.names.index(level)]}),) if level else (),
            )
            for (level, amounts), prefix in sorted(wanted.items())
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

    def is_hopeless(self, tree: Tree) -> bool:  # noqa: ARG002 - what is nested has to be looked at
        """Leave it to the search."""
        return False

    def proposals(self, tree: Tree, details: PlannerTree, budget: Budget) -> Proposals:  # noqa: ARG002 - details say all
        """Return the best way to serve the request in a tree, if there is one and the steps of a budget suffice."""
        children: dict[int | None, list[int]] = defaultdict(list)
        for provider, parent in details.parents.items():
            children[parent].append(provider)
        ids: dict[Path, int] = {}
        (usable,) = self._locks.usable([list(details.parents)], details)
        root = self._location(details, details.root, (children, frozenset(usable)))
        _note(root, (), {name: id_ for id_, name in details.names.items()}, ids)
        of_search = budget.child(STEPS)
        if of_search.left < STEPS_OF_A_TRY:
            return Proposals(complete=False)
        placement = place(root, [self._requirement], Rules(distinct=self._request.distinct), budget=of_search)
        found = [self._proposal(details, placement, ids)] if placement.feasible else []
        return Proposals(found, placement.complete)

    def _location(self, details: PlannerTree, provider: int, among: Among) -> Location:
        children, usable = among
        position = details.positions[provider]
        own = [self._levels.names[index] for index, here in enumerate(position) if here == provider]
        stocks = details.stocks.get(provider, {}) if provider in usable else {}
        return Location(
            name=details.names[provider],
            level=own[-1] if own else "",
            capacities={name: _capacity(stock) for name, stock in stocks.items()},
            children=tuple([self._location(details, child, among) for child in children[provider]]),
        )

    def _proposal(self, details: PlannerTree, placement: Placement, ids: Mapping[Path, int]) -> Proposal:
        amounts: dict[int, dict[str, int]] = defaultdict(dict)
        for (path, name), amount in placement.taken.items():
            amounts[ids[path]][name] = amount
        mappings = {
            prefix: (ids[placed.path],)
            for prefix, placed in _prefixes(placement.placed[0], self._written, "")
            if prefix or placed.requirement.amounts
        }
        touched = details.places.around(amounts)
        self._locks.taken(details, list(amounts), (), amounts)
        return Proposal(
            root=details.root,
            amounts=dict(amounts),
            mappings=mappings,
            touched=details.places.touched(touched),
        )


def _capacity(stock: Stock) -> Capacity:
    is_free = stock.min_unit <= 1 and stock.step_size == 1 and stock.max_unit >= stock.capacity
    units = ANY_AMOUNT if is_free else Units(stock.min_unit, stock.max_unit, stock.step_size)
    return Capacity(stock.capacity, stock.used, units)


def _walk(requirement: Requirement) -> Iterator[Requirement]:
    yield requirement
    for part in requirement.parts:
        yield from _walk(part)


def _by_prefix(requirement: Requirement, written: Requirement, prefix: str = "") -> Iterator[tuple[str, Requirement]]:
    """Yield requirements by the beginnings of their names, as they are written."""
    yield prefix, requirement
    for part, as_written in zip(requirement.parts, written.parts, strict=True):
        yield from _by_prefix(part, as_written, _joined(prefix, as_written))


def _joined(prefix: str, part: Requirement) -> str:
    here = f"{part.level}/{part.label}"
    return f"{prefix}/{here}" if prefix else here


def _note(location: Location, path: Path, by_name: Mapping[str, int], ids: dict[Path, int]) -> None:
    """Note which provider each location is."""
    ids[path] = by_name[location.name]
    for child in location.children:
        _note(child, (*path, (child.level, child.name)), by_name, ids)


def _prefixes(placed: Placed, written: Requirement, prefix: str) -> Iterator[tuple[str, Placed]]:
    """Yield the groups of a request by the beginnings of their names, as they are written there."""
    yield prefix, placed
    for part, group in zip(placed.parts, written.parts, strict=True):
        yield from _prefixes(part, group, _joined(prefix, group))
