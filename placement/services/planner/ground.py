"""What planning one request reads of one snapshot: once, however often and under whatever overlays it is planned."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property

from placement.allocators.compactness import Counts
from placement.candidates.compose.any_choice import AnyChoice
from placement.candidates.compose.proposals import Proposal
from placement.candidates.fragmentation import TreeFragmentation, WantedOfHost, wanted_by
from placement.candidates.key_order import KeyOrder
from placement.candidates.planner_trees import Deciding, TreeOutlines, TreesInDetail, TreeUse
from placement.candidates.ranking import Ranking, TreeScores
from placement.candidates.reading import SumsAsRead, shared_by
from placement.candidates.serving import Serving
from placement.candidates.tree_reader import TreeReader
from placement.candidates.wrapped import RememberingReader
from placement.domain.candidate_request import RequestGroup
from placement.domain.names import similar_names
from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerRequest
from placement.domain.planner_tree import PlannerTree
from placement.domain.quantities import ResourceAmounts
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree
from placement.errors import InvalidAt
from placement.services.cloud_cache import NamesInSnapshot, tree_reader
from placement.services.families import classes_in_families
from placement.services.least_places import least_places
from placement.services.planner.composers import Composers, PlannerOptions, Prepared
from placement.services.planner.overlays import KnownStocks
from placement.store.connection.unit_of_work import Transaction
from placement.store.resource_classes import all_classes
from placement.store.search.names import ids_for
from placement.store.search.roots import roots_of_providers


def ground_for(
    tx: Transaction,
    request: PlannerRequest,
    options: PlannerOptions,
    *,
    composers: Composers | None = None,
    overlay: Overlay = AS_IT_IS,
) -> "Ground":
    """Look up what a request names, and return the ground for planning it.

    Args:
        tx: the transaction.
        request: the request.
        options: the operator's options.
        composers: the composers to reuse and add to; new ones by default.
        overlay: releases every provider that any overlay of the planning releases.

    Raises:
        InvalidAt: the request names a class, trait or level that does not exist.
    """
    composers = composers or Composers()
    prepared = composers.prepared(request, options)
    plan = prepared.plan
    _check_names(tx, request, plan)
    avoided = frozenset(roots_of_providers(tx, request.avoided_trees).values())
    ids = ids_for(tx, plan, read_along=options.cache.read_along if options.cache else None)
    # Rules about several providers are left to composing. What paths ask for may be taken in turn.
    reader = tree_reader(tx, plan, ids, options.cache, spared=overlay.released, adds_up=not request.paths)
    return Ground(
        tx,
        request,
        options,
        composers=composers,
        prepared=prepared,
        avoided=avoided,
        reader=reader,
    )


class Ground:
    """One request in one snapshot. What it takes statements to know is read when it is first asked for.

    Args:
        tx: the transaction.
        request: the request.
        options: the operator's options.
        composers: the composers to reuse and add to.
        prepared: the request as these composers prepared it.
        avoided: the roots of the trees that the request avoids.
        reader: reads the trees that can serve it.
    """

    def __init__(
        self,
        tx: Transaction,
        request: PlannerRequest,
        options: PlannerOptions,
        *,
        composers: Composers,
        prepared: Prepared,
        avoided: frozenset[int],
        reader: TreeReader,
    ) -> None:
        self.tx = tx
        self.request = request
        self.profile = options.profile
        self._judge = options.judge
        self._cache = options.cache
        self._locks = options.locks
        self.composers = composers
        self.prepared = prepared
        self.avoided = avoided
        self.served: dict[int, bool] = {}
        """By root, whether an unchanged tree can serve it, as far as known."""
        self._serving = reader.serving
        self.stocks = KnownStocks(tx, self._serving.columns)
        self.reader = RememberingReader(reader)
        self.use = TreeUse(self._serving)
        """How providers are nested, and which are in use as it is."""

    def for_places(self, request: PlannerRequest, prepared: Prepared) -> "Ground":
        """Return the ground of the same request for another number of places of each tree; what was read is shared."""
        made = copy(self)
        made.request, made.prepared = request, prepared
        return made

    @property
    def spares(self) -> bool:
        """Whether trees are read with providers that have room only under an overlay."""
        return bool(self._serving.spared)

    @cached_property
    def level_ids(self) -> Sequence[int | None]:
        """The ids of the levels' traits, None for one that does not exist."""
        return level_ids(self.tx, self.prepared.levels)

    @cached_property
    def details(self) -> TreesInDetail:
        """The trees in all detail that decides."""
        names = NamesInSnapshot(self.tx, self._serving.columns.providers, self._cache)
        return TreesInDetail(self._serving, self._deciding(self._classes), names.of_trees)

    def without_free_places(self, trees: Sequence[Tree]) -> set[int]:
        """Return the roots of trees that provably lack a free place for an exclusive group, under any overlay."""
        wanted, spared = self.prepared.composer.wanted_free, self._serving.spared
        use = TreeUse(self._serving, spared=spared) if spared else self.use
        return use.without_free(wanted, trees, self.level_ids)

    @cached_property
    def any_choice(self) -> AnyChoice:
        """Finds trees where no choice of single providers serves the request."""
        return AnyChoice(self.request, self.use.parents_in)

    @cached_property
    def outlines(self) -> TreeOutlines | TreesInDetail:
        """Whatever decides whether trees can serve the request, but perhaps not how well."""
        if self.request.paths:
            return self.details  # All stocks matter to nested parts.
        use = self.use if self.request.exclusive else None
        return TreeOutlines(self._serving, self._deciding({*self._locks.values()}), use)

    def _deciding(self, classes: Collection[str] | None) -> Deciding:
        return deciding_for(self.tx, self._serving, self.request, levels=self.prepared.levels, classes=classes)

    @property
    def _classes(self) -> Collection[str] | None:
        """The classes that tell trees apart; None for all."""
        # Exclusive rules depend on the usage of every class; so do fragmentation scores, and paths.
        asks_for_all = self._judge is not None or self.request.exclusive or self.request.paths
        return None if asks_for_all else {*self._locks.values(), *self.prepared.composer.requested, *self._scored}

    @cached_property
    def _scored(self) -> Collection[str]:
        """The classes that decide a tree's score."""
        asked = self.prepared.composer.requested, Ranking(self.profile), self.families
        return TreeScores(*asked, shared=shared_by(self.reader), varies=bool(self._open_ended)).classes

    @property
    def _open_ended(self) -> list[RequestGroup]:
        """The groups of which it depends on a tree how many providers they take there."""
        return [one.group for one in self.request.groups if one.everything or one.per_subtree]

    @property
    def has_sharing(self) -> bool:
        """Whether sharing providers may serve trees."""
        return bool(self._serving.sharing.root_of)

    def own(self, proposal: Proposal) -> Mapping[int, ResourceAmounts] | None:
        """Return the own part of a proposal, by provider; None where sharing providers alone serve."""
        root_of, amounts = self._serving.sharing.root_of, proposal.amounts
        if not root_of:
            return amounts
        # Others are places around them, from which locks are taken: these belong to the trees of what they hold.
        serving = amounts.keys() & {one for providers in proposal.mappings.values() for one in providers}
        if serving <= root_of.keys():
            return None
        members = self.details.members
        return {one: of for one, of in amounts.items() if members[one].root_id == proposal.root}

    def sums_of_pools(self, sums: SumsAsRead, proposal: Proposal) -> Sequence[int]:
        """Return the sums of the trees of a proposal's sharing providers as one row, as ``SumsAsRead.together``."""
        root_of = self._serving.sharing.root_of
        return sums.together({root_of[provider] for provider in proposal.amounts if provider in root_of}, root_of)

    @property
    def is_simple(self) -> bool:
        """Whether each group takes one provider."""
        request = self.request
        return not request.paths and all(
            one.count <= 1 and not one.everything and not one.per_subtree for one in request.groups
        )

    @property
    def is_tree_by_tree(self) -> bool:
        """Whether taking from one tree leaves the candidates and scores of all others unchanged.

        It does not where providers share with other trees or fragmentation is scored.
        """
        return self._judge is None and not self.has_sharing

    @cached_property
    def counts_decide(self) -> bool:
        """Whether a tree's score depends on how many providers ``all`` or ``per-subtree`` finds there."""
        return any(not group.resources.keys().isdisjoint(self._scored) for group in self._open_ended)

    def tree_fragmentation(self, overlay: Overlay) -> TreeFragmentation | None:
        """Return how the request fragments trees; None if the profile ignores that."""
        if self._judge is None:
            return None
        plan, changed = self.prepared.plan, self.stocks.under(overlay)
        if self.request.paths:
            wanted = [WantedOfHost(self.prepared.composer.requested, 1, ())]
            return self._judge.judged(self.tx, plan, wanted, changed)
        counts = {one.suffix: one.count for one in self.request.groups}
        return self._judge.judged(self.tx, plan, wanted_by(plan, counts), changed)

    def cached_order(self, scores: TreeScores, found_by: Sequence[str]) -> KeyOrder | None:
        """Return the cached keys of all trees, ascending; None if none are cached or counts decide.

        Sums of a whole tree do not tell how many providers an open-ended group takes.
        """
        return self._cache.order(self.tx, scores, found_by) if self._cache and not self.counts_decide else None

    def fragmentation(self, tree: PlannerTree, proposal: Proposal) -> float | None:
        """Return the fragmentation score of a proposal; None if the profile ignores that."""
        if self._judge is None:
            return None
        return self._judge.device_judge_in(self.tx).score(tree.left(), proposal.amounts)

    @cached_property
    def families(self) -> list[str]:
        """The names of all classes, if the profile names any by family; otherwise none."""
        return classes_in_families(self.tx, Ranking(self.profile))

    @cached_property
    def least_places(self) -> Mapping[int, Counts] | None:
        """By root, lower bounds on the places for the counted demands; None where unknown."""
        counted = self.prepared.composer.counted
        return least_places(self.tx, self._serving, counted, levels=self.level_ids, cache=self._cache)


def deciding_for(
    tx: Transaction,
    serving: Serving,
    request: PlannerRequest,
    levels: Levels,
    *,
    classes: Collection[str] | None = None,
) -> Deciding:
    """Return what decides about the trees of a snapshot for a request.

    Args:
        tx: the snapshot.
        serving: its columns.
        request: the request.
        levels: its levels.
        classes: the names of the classes that decide; None for all.
    """
    named, connection = tx.names, tx.connection
    known = serving.columns.class_ids if classes is None else named.classes.ids(connection, {*classes}).values()
    devices = [one.device for one in request.groups if one.device is not None]
    traits = frozenset(levels.traits).union(*[one.forbidden.union(*one.required) for one in devices])
    by_id = {id_: name for name, id_ in named.traits.ids(connection, traits).items()}
    return Deciding(level_ids(tx, levels), named.classes.names(connection, known), by_id)


def level_ids(tx: Transaction, levels: Levels) -> list[int | None]:
    """Return the ids of the traits of levels, None for one that does not exist."""
    ids = tx.names.traits.ids(tx.connection, {*levels.traits})
    return [ids.get(trait) for trait in levels.traits]


def _check_names(tx: Transaction, request: PlannerRequest, plan: Plan) -> None:
    """Refuse the first name that does not exist."""
    names = {name for demand in plan.demands for name, _amount in demand.resources}
    classes = tx.names.classes.ids(tx.connection, names)
    for name in sorted(names - classes.keys()):
        similar = similar_names(name, [one.name for one in all_classes(tx)])
        hint = f" Similar: {', '.join(similar)}." if similar else ""
        raise InvalidAt(_place_of_class(request, name), f"There is no resource class {name}.{hint}")
    asked = list(_traits_of(request))
    traits = tx.names.traits.ids(tx.connection, frozenset().union(*[of_one for _path, of_one in asked]))
    for path, of_one in asked:
        if unknown := sorted(of_one - traits.keys()):
            written = request.written.get((path[1], unknown[0])) if len(path) > 1 else None
            raise InvalidAt(("paths", written) if written else path, f"There is no trait {unknown[0]}.")


def _place_of_class(request: PlannerRequest, resource_class: str) -> tuple[str, ...]:
    """Return the path in the document where a class is first asked for."""
    for one in request.groups:
        if resource_class in one.group.resources:
            written = request.written.get((one.suffix, resource_class))
            return ("paths", written) if written else ("groups", one.suffix, "resources", resource_class)
    return ("paths",)


def _traits_of(request: PlannerRequest) -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    """Yield the traits named in conditions, with the path of each condition."""
    yield ("root_required",), request.root_required | request.root_forbidden
    for one in request.groups:
        for group, key in ((one.group, "required"), (one.device, "selector")):
            if group is not None:
                yield ("groups", one.suffix, key), group.forbidden.union(*group.required)
