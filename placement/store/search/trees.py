"""The trees a search walks through, read from the database in chunks of root ids, only as far as they are wanted."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any

from sqlalchemy import bindparam, select

from placement.domain.levels import Layout
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree
from placement.store.connection.chunks import MOST_PARAMETERS
from placement.store.connection.kept import Kept
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.any_of import NO_SETS, sets_shape
from placement.store.search.levels import (
    NOBODY,
    Fit,
    Fitting,
    Marks,
    Parents,
    Row,
    add_places,
    marks_in,
    parents_in,
    with_traits,
)
from placement.store.search.names import NamedIds
from placement.store.search.query import (
    Parameters,
    Shape,
    kind_shape,
    narrowing,
    parameters,
)
from placement.store.search.ranges import Scope, within
from placement.store.search.roots import RootShape, root_conditions
from placement.store.tables import (
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)

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
    fits: list[Fit] = field(default_factory=list)
    met: dict[int, int] = field(default_factory=dict)


class TreeSource:
    """Reads the trees in which every slot of a plan has a provider.

    With ``with_places``, providers come with the places of levels that they lie in, where there are any.
    """

    def __init__(self, tx: Transaction, plan: Plan, ids: NamedIds, *, with_places: bool = False) -> None:
        self.plan = plan
        self._tx = tx
        self._ids = ids
        self._shape = _shape(plan, ids, keeps_usage=tx.database.keeps_usage, weighed=with_places and any(ids.levels))
        self._values = parameters(plan, ids)
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
        fitting = Fitting.of(rows, with_parents=shape.with_parents) if shape.weighed and rows else NOBODY
        met, parents, marks = self._details(shape, values, fitting)
        trees = [Tree(root, found, room, met, parents, home, sharing) for root, found in options.items()]
        if marks:
            layout = Layout(parents, marks, levels=len(self._ids.levels))
            add_places(trees, layout, fitting, self._sharing.fits)
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
                sharing.fits.append((provider, rooms[-1]))
        self.home = sharing.home
        self._note_room(sharing.room, rows)
        if sharing.home and self.plan.trait_sets:
            pairs = self._tx.tuples(_TRAITS_OF, {"providers": sorted(sharing.home), "traits": sorted(self._trait_ids)})
            sharing.met = self._masks(pairs)
        return sharing

    def _add_sharing(self, options: Options, shape: Shape, values: Parameters) -> None:
        """Add each sharing provider to the trees it shares with; such a tree may have nothing fitting of its own."""
        sharing = self._sharing
        statement = _anchors(shape.root, scope=shape.scope)
        for root, provider in self._tx.tuples(statement, {**values, "providers": sorted(sharing.home)}):
            for servants, providers in zip(sharing.options, options[root], strict=True):
                if provider in servants and provider not in providers:
                    providers.append(provider)

    def _details(self, shape: Shape, values: Parameters, fitting: Fitting) -> tuple[dict[int, int], Parents, Marks]:
        """Return what only some requests need: who meets which traits, who is whose parent, who stands for a place."""
        sharing = self._sharing
        parents, traits = self._parents_and_traits(shape, values, fitting)
        if self.plan.request.same_subtree and sharing.home:
            homes = {"roots": sorted(set(sharing.home.values()))}
            parents |= dict(self._tx.tuples(_parents(scope=Scope.LISTED), homes))
        marks = marks_in(traits, self._ids.levels) if shape.weighed else {}
        if not self.plan.trait_sets:
            return sharing.met, parents, marks
        wanted = self._trait_ids
        return sharing.met | self._masks([(row[0], row[3]) for row in traits if row[3] in wanted]), parents, marks

    def _parents_and_traits(self, shape: Shape, values: Parameters, fitting: Fitting) -> tuple[Parents, list[Row]]:
        """Return the parents of all whom the way up from somebody who fits meets, and who has which traits.

        Either only if it matters.
        """
        tied, traits = bool(self.plan.request.same_subtree), {*self._trait_ids}
        if shape.weighed:
            traits |= {trait for trait in self._ids.levels if trait is not None}
        if not traits:
            return dict(self._tx.tuples(_parents(scope=shape.scope), values)) if tied else {}, []
        read = partial(with_traits, self._tx, traits, shape.scope, values)
        found = read(with_others=tied)
        if tied or not shape.weighed:
            return parents_in(found), found
        parents = parents_in(found)
        parents.update(zip(fitting.providers, fitting.parents, strict=True))
        above = {*parents.values()}.difference(parents, [None])
        if above and above.difference(fitting.roots, [row[2] for row in found]):
            # Somebody in between has none of the traits, and can serve nothing.
            found = read(with_others=True)
            parents = parents_in(found)
        return parents, found

    @cached_property
    def _trait_ids(self) -> frozenset[int]:
        return frozenset([self._ids.traits[name] for any_of in self.plan.trait_sets for name in any_of])

    def _masks(self, pairs: list[tuple[int, int]]) -> dict[int, int]:
        """Return for each provider the trait sets it meets, as bits."""
        bits: dict[int, int] = defaultdict(int)
        for index, any_of in enumerate(self.plan.trait_sets):
            for name in any_of:
                bits[self._ids.traits[name]] |= 1 << index
        masks: dict[int, int] = defaultdict(int)
        for provider, trait in pairs:
            masks[provider] |= bits[trait]
        return masks


def _shape(plan: Plan, ids: NamedIds, *, keeps_usage: bool, weighed: bool) -> Shape:
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
        # Where providers are tied together, all parents are read anyway.
        with_parents=weighed and not plan.request.same_subtree,
    )


_PROVIDER = resource_providers.c
_HAS = resource_provider_traits.c
_TRAITS_OF = Kept(
    select(_HAS.resource_provider_id, _HAS.trait_id).where(
        _HAS.resource_provider_id.in_(bindparam("providers", expanding=True)),
        _HAS.trait_id.in_(bindparam("traits", expanding=True)),
    )
)


@lru_cache(maxsize=len(Scope))
def _parents(*, scope: Scope) -> Kept:
    columns = select(_PROVIDER.id, _PROVIDER.parent_provider_id)
    return Kept(columns.where(*within(_PROVIDER.root_provider_id, scope)))


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
