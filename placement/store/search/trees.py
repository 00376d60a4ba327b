"""The trees a search walks through, read from the database in chunks of root ids, only as far as they are wanted."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from sqlalchemy import bindparam, select

from placement.domain.levels import Layout
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree
from placement.store.connection.chunks import MOST_PARAMETERS
from placement.store.connection.kept import Kept
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.any_of import NO_SETS, sets_shape
from placement.store.search.details import DetailReader, Details
from placement.store.search.levels import Fits, add_places, fits_in
from placement.store.search.names import NamedIds
from placement.store.search.query import (
    Parameters,
    Shape,
    kind_shape,
    narrowing,
    parameters,
)
from placement.store.search.ranges import Scope
from placement.store.search.roots import RootShape, root_conditions
from placement.store.search.summaries import Inhabitants, inhabitants
from placement.store.tables import resource_provider_aggregates, resource_providers

IDS_PER_WANTED = 16
"""Ids in the first chunk for each candidate that is wanted: a tree of a nested cloud takes some ten ids."""

GROWTH = 4
"""Each chunk has this many times the ids of the one before: the number of round trips grows with the logarithm."""


Options = dict[int, list[list[int]]]
"""For each tree, by the id of its root, and each kind of the plan: the providers that can serve it."""


@dataclass(slots=True)
class _Sharing:
    """Providers that share: for each kind those that can serve it, and where they are at home."""

    options: list[set[int]]
    home: dict[int, int] = field(default_factory=dict)
    room: dict[tuple[int, str], float] = field(default_factory=dict)
    fits: Fits = field(default_factory=lambda: defaultdict(float))
    met: dict[int, int] = field(default_factory=dict)


class TreeSource:
    """Reads the trees in which every slot of a plan has a provider.

    Args:
        tx: where to read.
        plan: what is asked for.
        ids: the ids of the names in it.
        with_places: whether providers come with the places of levels that they lie in, where there are any.
        all_wanted: whether all trees will be read at once, and most of them summarised in the answer.
    """

    def __init__(
        self, tx: Transaction, plan: Plan, ids: NamedIds, *, with_places: bool = False, all_wanted: bool = False
    ) -> None:
        self.plan = plan
        self._tx = tx
        self._ids = ids
        weighed = with_places and any(ids.levels)
        self._details = DetailReader(tx, plan, ids, with_places=weighed)
        # What the search needs to know of the trees comes with what the answer tells of them, so it is read once.
        self._reads_inhabitants = all_wanted and self._details.is_needed
        self._shape = _shape(
            plan,
            ids,
            keeps_usage=tx.database.keeps_usage,
            weighed=weighed,
            # Where providers are tied together, all parents are read anyway.
            with_parents=weighed and not plan.request.same_subtree and not self._reads_inhabitants,
        )
        self._values = parameters(plan, ids)
        self.inhabitants: Inhabitants | None = None
        """Who is in the trees that were found, and in those of the providers that share, where that was read."""
        self.home: dict[int, int] = {}
        """The roots of the providers that share, once trees are being read."""
        self.found_any = False
        """Whether a tree in which every slot has a provider was read."""

    @property
    def most_listed(self) -> int:
        """How many trees can be read by a list of their roots: it is written into the statement for each kind."""
        return MOST_PARAMETERS // (len(self.plan.kinds) + 4)

    @property
    def shares(self) -> bool:
        """Whether a tree may serve with what others share."""
        return self._ids.shares

    def trees(self, wanted: int | None, *, only: int | None = None) -> Iterator[Tree]:
        """Yield the trees in the order of their root ids.

        Args:
            wanted: how many candidates are wanted; None reads all trees at once.
            only: the root of the one tree to be read.
        """
        if only is not None:
            yield from self.trees_of([only]) if self.is_possible else ()
            return
        for trees, _last in self.chunks(wanted):
            yield from trees

    def chunks(self, wanted: int | None) -> Iterator[tuple[list[Tree], int]]:
        """Yield the same trees in lists, each with the highest root id that it may reach."""
        if not self.is_possible:
            return
        if (root := self.only_root) is not None:
            yield self.trees_of([root]), root
            return
        first, span = 0, self._ids.highest_root + 1 if wanted is None else wanted * IDS_PER_WANTED
        if span > self._ids.highest_root:
            yield self.all_trees(), self._ids.highest_root
            return
        while first <= self._ids.highest_root:
            bounds = {"first_root": first, "last_root": first + span - 1}
            yield self._read(Scope.RANGE, bounds), first + span - 1
            first, span = first + span, span * GROWTH

    def trees_of(self, roots: Sequence[int]) -> list[Tree]:
        """Return those of the trees with these roots that can serve every slot, by root id."""
        return self._read(Scope.LISTED, {"roots": list(roots)})

    def all_trees(self) -> list[Tree]:
        """Return all trees that can serve every slot, by root id."""
        return self._read(Scope.ALL, {})

    def own_providers(self, kinds: Sequence[int]) -> list[tuple[Any, ...]] | None:
        """Return rows of (kind, root, provider, ..., parent) for the providers that can serve some kinds, in all trees.

        None if providers of other trees can serve any of them.
        """
        if any([self._sharing.options[kind] for kind in kinds]):
            return None
        shape = replace(self._shape, with_parents=True)
        return self._tx.tuples(narrowing(shape, tuple(kinds)), self._values)

    @property
    def only_root(self) -> int | None:
        """The root of the one tree that in_tree leaves, if it does."""
        for index, kind in enumerate(self.plan.kinds):
            if self._shape.kinds[index].in_tree and kind.group.in_tree and not self._sharing.options[index]:
                return self._ids.roots[kind.group.in_tree]
        return None

    @property
    def is_possible(self) -> bool:
        """Whether the names in the request leave any hope: an unknown aggregate or tree has no members."""
        for group in self.plan.request.groups:
            if group.in_tree is not None and group.in_tree not in self._ids.roots:
                return False
            if any(any_of.isdisjoint(self._ids.aggregates) for any_of in group.member_of):
                return False
            if not (group.resources or group.required or group.member_of):
                # The reference finds no provider for a group that only forbids.
                return False
        return True

    def _read(self, scope: Scope, which: Parameters) -> list[Tree]:
        """Return the trees of a scope in which every slot has a provider, by root id."""
        values = {**self._values, **which}
        shape = replace(self._shape, scope=scope)
        kinds = range(len(self.plan.kinds))
        options: Options = defaultdict(lambda: [[] for _ in kinds])
        rows = self._tx.tuples(narrowing(shape), values)
        for row in rows:
            options[row[1]][row[0]].append(row[2])
        if self._sharing.home:
            self._add_sharing(options, shape, values)
        complete = {root: options[root] for root in sorted(options) if all(options[root])}
        if not complete:
            return []
        self.found_any = True
        for of_root in complete.values():
            for providers in of_root:
                if len(providers) > 1:
                    providers.sort()
        return self._trees(complete, rows, shape, values)

    def _trees(self, options: Options, rows: list[tuple[Any, ...]], shape: Shape, values: Parameters) -> list[Tree]:
        """Make the trees, with all that the search has to know."""
        home, sharing = self._sharing.home, self._sharing.home.keys()
        room = dict(self._sharing.room)
        self._note_room(room, rows)
        fits = fits_in(rows) if shape.weighed else {}
        met, parents, marks, homes = self._details_of(options, rows, fits, scope=shape.scope, values=values)
        trees = [Tree(root, found, room, met, parents, home, sharing) for root, found in options.items()]
        if marks:
            layout = Layout(parents, marks, homes, levels=len(self._ids.levels))
            add_places(trees, layout, fits, self._sharing.fits)
        return trees

    def _note_room(self, room: dict[tuple[int, str], float], rows: list[tuple[Any, ...]]) -> None:
        """Remember how much the providers in these rows have of the classes that slots compete for."""
        for place, name in enumerate(self.plan.contended):
            asking = {index for index, kind in enumerate(self._shape.kinds) if place in kind.contended}
            room.update({(row[2], name): row[3 + place] for row in rows if row[0] in asking})

    @cached_property
    def _sharing(self) -> _Sharing:
        """The sharing providers that can serve anything of the plan, from all trees."""
        sharing = _Sharing([set() for _ in self.plan.kinds])
        if not self._ids.shares:
            return sharing
        rows = self._tx.tuples(narrowing(replace(self._shape, sharing=True)), self._values)
        for kind, root, provider, *rooms in rows:
            if self._shape.kinds[kind].in_tree and not self.plan.kinds[kind].group.is_granular:
                continue  # in_tree keeps the unsuffixed group inside the tree.
            sharing.options[kind].add(provider)
            sharing.home[provider] = root
            if self._shape.weighed:
                sharing.fits[provider] += rooms[-1]
        self.home = sharing.home
        self._note_room(sharing.room, rows)
        if sharing.home and self.plan.trait_sets:
            sharing.met = self._details.met_by(sharing.home)
        return sharing

    def _add_sharing(self, options: Options, shape: Shape, values: Parameters) -> None:
        """Add each sharing provider to the trees it shares with; such a tree may have nothing fitting of its own."""
        sharing = self._sharing
        statement = _anchors(shape.root, scope=shape.scope)
        for root, provider in self._tx.tuples(statement, {**values, "providers": sorted(sharing.home)}):
            for servants, providers in zip(sharing.options, options[root], strict=True):
                if provider in servants and provider not in providers:
                    providers.append(provider)

    def _details_of(
        self, options: Options, rows: list[tuple[Any, ...]], fits: Fits, *, scope: Scope, values: Parameters
    ) -> Details:
        """Return what only some requests need to know of the trees with these options, and of those that share."""
        sharing = self._sharing
        if self._reads_inhabitants:
            self.inhabitants = inhabitants(self._tx, {*options, *sharing.home.values()})
            return self._details.of_inhabitants(self.inhabitants, fits)
        found = self._details.of_scope(scope, values, rows)
        if self.plan.request.same_subtree and sharing.home:
            found.parents.update(self._details.parents_in_trees({*sharing.home.values()}))
        return found._replace(met=sharing.met | found.met)


def _shape(plan: Plan, ids: NamedIds, *, keeps_usage: bool, weighed: bool, with_parents: bool) -> Shape:
    root = RootShape(
        required=sets_shape([frozenset({name}) for name in plan.request.root_required]),
        forbidden=bool(plan.request.root_forbidden),
        forbidden_aggregates=bool(plan.forbidden_root_aggregates),
        # Where providers share, the trait may come from outside the tree, so the tree cannot be judged by its own.
        tree_traits=NO_SETS if ids.shares else sets_shape(plan.trait_sets),
    )
    return Shape(
        kinds=tuple(kind_shape(plan, kind) for kind in plan.kinds),
        root=root,
        contended=len(plan.contended),
        scope=Scope.ALL,
        sharing=False,
        keeps_usage=keeps_usage,
        weighed=weighed,
        with_parents=with_parents,
    )


_PROVIDER = resource_providers.c


@lru_cache(maxsize=64)
def _anchors(root: RootShape, *, scope: Scope) -> Kept:
    """Return the statement: rows of (root id, id of a sharing provider that shares an aggregate with that tree)."""
    shares = resource_provider_aggregates.alias("shares")
    member = resource_provider_aggregates.alias("member")
    return Kept(
        select(_PROVIDER.root_provider_id, shares.c.resource_provider_id)
        .join(member, member.c.resource_provider_id == _PROVIDER.id)
        .join(shares, shares.c.aggregate_id == member.c.aggregate_id)
        .where(
            shares.c.resource_provider_id.in_(bindparam("providers", expanding=True)),
            *root_conditions(root, _PROVIDER.root_provider_id, scope=scope),
        )
        .distinct()
    )
