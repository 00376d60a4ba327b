"""The trees a search walks through, read from the database in chunks of root ids, only as far as they are wanted."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from sqlalchemy import Select, bindparam, select

from placement.domain.search_plan import Plan
from placement.domain.tree import Tree
from placement.store.any_of import NO_SETS, sets_shape
from placement.store.candidate_names import NamedIds
from placement.store.candidate_query import (
    KEPT_STATEMENTS,
    Parameters,
    Shape,
    kind_shape,
    narrowing,
    parameters,
)
from placement.store.candidate_roots import BOUNDS, RootShape, root_conditions
from placement.store.kept import Kept
from placement.store.ranges import is_between
from placement.store.tables import (
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)
from placement.store.unit_of_work import Transaction

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
    met: dict[int, int] = field(default_factory=dict)


class TreeSource:
    """Reads the trees in which every slot of a plan has a provider."""

    def __init__(self, tx: Transaction, plan: Plan, ids: NamedIds) -> None:
        self._tx = tx
        self._plan = plan
        self._values = parameters(plan, ids)
        self._ids = ids
        self._shape = _shape(plan, ids, keeps_usage=tx.database.keeps_usage)
        self.home: dict[int, int] = {}
        """The roots of the providers that share, once trees are being read."""

    def trees(self, wanted: int | None, *, only: int | None = None) -> Iterator[Tree]:
        """Yield the trees in the order of their root ids.

        Args:
            wanted: how many candidates are wanted; None reads all trees at once.
            only: the root of the one tree to be read.
        """
        if not self._is_possible():
            return
        sharing = self._sharing()
        self.home = sharing.home
        for first, last in [(only, only)] if only is not None else self._chunks(wanted, sharing):
            yield from self._trees_between(first, last, sharing)

    def _is_possible(self) -> bool:
        """Tell whether the names in the request leave any hope: an unknown aggregate or tree has no members."""
        for group in self._plan.request.groups:
            if group.in_tree is not None and group.in_tree not in self._ids.roots:
                return False
            if any(any_of.isdisjoint(self._ids.aggregates) for any_of in group.member_of):
                return False
            if not (group.resources or group.required or group.member_of):
                # The reference finds no provider for a group that only forbids.
                return False
        return True

    def _chunks(self, wanted: int | None, sharing: _Sharing) -> Iterator[tuple[int | None, int | None]]:
        if (root := self._only_root(sharing)) is not None:
            yield root, root
            return
        if wanted is None:
            yield None, None
            return
        first, span = 0, wanted * IDS_PER_WANTED
        while first <= self._ids.highest_root:
            yield first, first + span - 1
            first, span = first + span, span * GROWTH

    def _only_root(self, sharing: _Sharing) -> int | None:
        """Return the root of the one tree that in_tree leaves, if it does."""
        for index, kind in enumerate(self._plan.kinds):
            if self._shape.kinds[index].in_tree and kind.group.in_tree and not sharing.options[index]:
                return self._ids.roots[kind.group.in_tree]
        return None

    def _trees_between(self, first: int | None, last: int | None, sharing: _Sharing) -> Iterator[Tree]:
        values = {**self._values, "first_root": first, "last_root": last}
        shape = replace(self._shape, ranged=first is not None)
        kinds = range(len(self._plan.kinds))
        options: Options = defaultdict(lambda: [[] for _ in kinds])
        room: dict[tuple[int, str], float] = dict(sharing.room)
        rows = self._tx.tuples(narrowing(shape), values)
        for row in rows:
            options[row[1]][row[0]].append(row[2])
        self._note_room(room, rows)
        if sharing.home:
            self._add_sharing(options, sharing, shape, values)
        complete = [root for root in sorted(options) if all(options[root])]
        if not complete:
            return
        met, parents = self._details(sharing, shape, values)
        for root in complete:
            for providers in options[root]:
                if len(providers) > 1:
                    providers.sort()
            yield Tree(root, options[root], room, met, parents, home=sharing.home, sharing=sharing.home.keys())

    def _note_room(self, room: dict[tuple[int, str], float], rows: list[tuple[Any, ...]]) -> None:
        """Remember how much the providers in these rows have of the classes that slots compete for."""
        for place, name in enumerate(self._plan.contended):
            asking = {index for index, kind in enumerate(self._shape.kinds) if place in kind.contended}
            room.update({(row[2], name): row[3 + place] for row in rows if row[0] in asking})

    def _sharing(self) -> _Sharing:
        """Read the sharing providers that can serve anything of the plan, from all trees."""
        sharing = _Sharing([set() for _ in self._plan.kinds])
        if not self._ids.shares:
            return sharing
        shape = replace(self._shape, sharing=True, ranged=False)
        rows = self._tx.tuples(narrowing(shape), self._values)
        for kind, root, provider, *_rooms in rows:
            if self._shape.kinds[kind].in_tree and not self._plan.kinds[kind].group.is_granular:
                continue  # in_tree keeps the unsuffixed group inside the tree.
            sharing.options[kind].add(provider)
            sharing.home[provider] = root
        self._note_room(sharing.room, rows)
        if sharing.home and self._plan.trait_sets:
            pairs = self._tx.tuples(_TRAITS_OF, {"providers": sorted(sharing.home), "traits": self._trait_ids()})
            sharing.met = self._masks(pairs)
        return sharing

    def _add_sharing(self, options: Options, sharing: _Sharing, shape: Shape, values: Parameters) -> None:
        """Add each sharing provider to the trees it shares with; such a tree may have nothing fitting of its own."""
        statement = _anchors(shape.root, ranged=shape.ranged)
        for root, provider in self._tx.tuples(statement, {**values, "providers": sorted(sharing.home)}):
            for servants, providers in zip(sharing.options, options[root], strict=True):
                if provider in servants and provider not in providers:
                    providers.append(provider)

    def _details(
        self, sharing: _Sharing, shape: Shape, values: Parameters
    ) -> tuple[dict[int, int], dict[int, int | None]]:
        """Return what only some requests need: who meets which traits, and who is whose parent."""
        met = dict(sharing.met)
        parents: dict[int, int | None] = {}
        if self._plan.trait_sets:
            pairs = self._tx.tuples(_tree_traits(ranged=shape.ranged), {**values, "traits": self._trait_ids()})
            met |= self._masks(pairs)
        if self._plan.request.same_subtree:
            parents = dict(self._tx.tuples(_parents(ranged=shape.ranged), values))
            if sharing.home:
                homes = {"roots": sorted(set(sharing.home.values()))}
                parents |= dict(self._tx.tuples(_PARENTS_OF_TREES, homes))
        return met, parents

    def _trait_ids(self) -> list[int]:
        return sorted({self._ids.traits[name] for any_of in self._plan.trait_sets for name in any_of})

    def _masks(self, pairs: list[tuple[int, int]]) -> dict[int, int]:
        """Return for each provider the trait sets it meets, as bits."""
        bits: dict[int, int] = defaultdict(int)
        for index, any_of in enumerate(self._plan.trait_sets):
            for name in any_of:
                bits[self._ids.traits[name]] |= 1 << index
        masks: dict[int, int] = defaultdict(int)
        for provider, trait in pairs:
            masks[provider] |= bits[trait]
        return masks


def _shape(plan: Plan, ids: NamedIds, *, keeps_usage: bool) -> Shape:
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
        ranged=False,
        sharing=False,
        keeps_usage=keeps_usage,
    )


_PROVIDER = resource_providers.c
_HAS = resource_provider_traits.c
_TRAITS_OF = Kept(
    select(_HAS.resource_provider_id, _HAS.trait_id).where(
        _HAS.resource_provider_id.in_(bindparam("providers", expanding=True)),
        _HAS.trait_id.in_(bindparam("traits", expanding=True)),
    )
)
_PARENTS_OF_TREES = Kept(
    select(_PROVIDER.id, _PROVIDER.parent_provider_id).where(
        _PROVIDER.root_provider_id.in_(bindparam("roots", expanding=True))
    )
)


def _within(statement: Select[Any], *, ranged: bool) -> Kept:
    if not ranged:
        return Kept(statement)
    return Kept(statement.where(is_between(_PROVIDER.root_provider_id, *BOUNDS)))


@lru_cache(maxsize=2)
def _parents(*, ranged: bool) -> Kept:
    return _within(select(_PROVIDER.id, _PROVIDER.parent_provider_id), ranged=ranged)


@lru_cache(maxsize=2)
def _tree_traits(*, ranged: bool) -> Kept:
    pairs = select(_HAS.resource_provider_id, _HAS.trait_id).join(
        resource_providers, _PROVIDER.id == _HAS.resource_provider_id
    )
    return _within(pairs.where(_HAS.trait_id.in_(bindparam("traits", expanding=True))), ranged=ranged)


@lru_cache(maxsize=KEPT_STATEMENTS)
def _anchors(root: RootShape, *, ranged: bool) -> Kept:
    """Return the statement: rows of (root id, id of a sharing provider that shares an aggregate with that tree)."""
    shares = resource_provider_aggregates.alias("shares")
    member = resource_provider_aggregates.alias("member")
    return Kept(
        select(_PROVIDER.root_provider_id, shares.c.resource_provider_id)
        .join(member, member.c.resource_provider_id == _PROVIDER.id)
        .join(shares, shares.c.aggregate_id == member.c.aggregate_id)
        .where(
            shares.c.resource_provider_id.in_(bindparam("providers", expanding=True)),
            *root_conditions(root, _PROVIDER.root_provider_id, ranged=ranged),
        )
        .distinct()
    )
