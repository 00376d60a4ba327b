"""The trees that a search walks through: what narrowing leaves, read in chunks of root ids as far as needed."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from placement.domain.search_limits import LIMITS, SearchLimits
from placement.domain.tree import PlaceFacts, Tree, TreesRead
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.details import DetailReader, TreeDetails
from placement.store.search.narrowing import Narrowed, Narrowing
from placement.store.search.parents import parents_in
from placement.store.search.ranges import EVERYWHERE, Extent
from placement.store.search.scores import TreeSums, sums_by_name
from placement.store.search.serving import DEMANDS, PROVIDER, Serving, room_of
from placement.store.search.summaries import ProvidersOfTrees, providers_of_trees

Room = dict[tuple[int, str], float]
"""A provider's room for all slots together, by (provider, contended class)."""


class TreeReader:
    """Reads the trees that a narrowing leaves: the Reader of ``candidates.reading`` for real databases.

    Args:
        tx: the transaction.
        narrowing: finds the trees. If it computes fit counts, trees come with the facts about their places.
        all_wanted: whether all trees will be read at once, and most of them summarised in the answer.
        limits: the sizes of the chunks.
    """

    def __init__(
        self, tx: Transaction, narrowing: Narrowing, *, all_wanted: bool = False, limits: SearchLimits = LIMITS
    ) -> None:
        self._tx = tx
        self._limits = limits
        self._narrowing = narrowing
        self.plan, self._ids = narrowing.plan, narrowing.ids
        with_places = narrowing.with_fit_counts
        self._details = DetailReader(tx, self.plan, self._ids, with_places=with_places)
        # The answer shows everything that the search needs to know of the trees, so it is read only once.
        self._reads_providers = all_wanted and self._details.is_needed
        # For same_subtree all parents are read anyway.
        self._with_parents = with_places and not self.plan.request.same_subtree and not self._reads_providers
        self.providers: ProvidersOfTrees | None = None
        """The providers of the trees found, and of those with sharing providers, if they were read."""
        self.root_of: Mapping[int, int] = {}
        """The roots of the sharing providers, once trees have been read."""
        self.found_any = False
        """Whether any tree with a provider for every slot has been read."""

    @property
    def is_possible(self) -> bool:
        """Whether the request's names leave any hope."""
        return self._narrowing.is_possible

    @property
    def only_root(self) -> int | None:
        """The root of the single tree that in_tree leaves, if it does."""
        return self._narrowing.only_root

    @property
    def shares(self) -> bool:
        """Whether trees may be served by sharing providers."""
        return self._ids.shares and self.is_possible and bool(self._narrowing.sharing.root_of)

    @property
    def shared_demands(self) -> AbstractSet[int]:
        """The demands of the plan that sharing providers may serve."""
        options = self._narrowing.sharing.options if self.shares else ()
        return {demand for demand, providers in enumerate(options) if providers}

    @property
    def nobody(self) -> Mapping[int, str]:
        """The demands that no provider can serve, each with the condition after which none is left."""
        return self._narrowing.nobody

    @property
    def ruled_out_by_room(self) -> bool:
        """Whether any tree was ruled out because too little is left in it for all that is asked for."""
        return self._narrowing.ruled_out_by_room

    @property
    def most_listed(self) -> int:
        """The most trees that can be read by a list of their roots."""
        return self._narrowing.most_listed

    def sums(
        self, classes: Sequence[str], found_by: Sequence[str], roots: Collection[int] | None = None
    ) -> list[TreeSums]:
        """Return the sums of ``classes`` for trees that have any of these or of ``found_by``. One statement."""
        return sums_by_name(self._tx, classes, found_by, roots)

    def trees(self, wanted: int | None) -> Iterator[Tree]:
        """Yield the trees one by one, by root id, reading as ``chunks`` does."""
        for read, _last in self.chunks(wanted):
            yield from read.trees

    def chunks(self, wanted: int | None) -> Iterator[tuple[TreesRead, int]]:
        """Yield the trees in chunks, by root id, each with the highest root id that it covers.

        Args:
            wanted: how many candidates are wanted; None reads all trees at once.
        """
        if not self.is_possible:
            return
        if (root := self.only_root) is not None:
            yield self.trees_of([root]), root
            return
        highest = self._ids.highest_root
        first, span, found = 0, highest + 1 if wanted is None else wanted * self._limits.ids_per_wanted, 0
        if span > highest:
            yield self.all_trees(), highest
            return
        while first <= highest:
            if wanted and (left := self._narrowing.with_room_from(first)) is not None:
                yield from self._listed(left, wanted)
                return
            read = self._read(Extent.between(first, first + span - 1))
            yield read, first + span - 1
            first, found = first + span, found + len(read.trees)
            span *= self._limits.growth
            if wanted and 0 < found < wanted:
                # If trees stay as dense as so far, twice the number that is missing is enough.
                span = min(span, 2 * first * (wanted - found) // found)

    def _listed(self, roots: Sequence[int], wanted: int) -> Iterator[tuple[TreesRead, int]]:
        """Yield the trees with these roots, and nothing else, in chunks that start small and grow."""
        start, size = 0, max(self._limits.first_trees, wanted)
        while start < len(roots):
            some = roots[start : start + min(size, self.most_listed)]
            start, size = start + len(some), size * self._limits.growth
            yield self.trees_of(some), some[-1] if start < len(roots) else self._ids.highest_root

    def with_room(self, roots: Iterable[int]) -> Sequence[int] | None:
        """Return those of some trees that have enough left; None if that would cost much to find out."""
        return self._narrowing.with_room(roots)

    def trees_of(self, roots: Sequence[int]) -> TreesRead:
        """Return those of the trees with these roots that can serve every slot, by root id."""
        return self._read(Extent.listed(roots))

    def all_trees(self) -> TreesRead:
        """Return all trees that can serve every slot, by root id."""
        return self._read(EVERYWHERE)

    def _read(self, extent: Extent) -> TreesRead:
        """Read what narrowing leaves of an extent: its own statements, and at most three for details."""
        narrowed = self._narrowing.narrowed(extent, with_parents=self._with_parents)
        self.root_of = self._narrowing.sharing.root_of
        if not narrowed.options:
            return TreesRead([])
        self.found_any = True
        room = {**self._shared_room, **self._room(narrowed.serving)}
        fits = narrowed.serving.fit_counts() if self._narrowing.with_fit_counts else {}
        known = self._details_of(narrowed, fits, extent)
        root_of, sharing = self.root_of, self.root_of.keys()
        trees = [
            Tree(root, options, room, known.met, known.parents, root_of, sharing)
            for root, options in narrowed.options.items()
        ]
        if not known.level_bits:
            return TreesRead(trees)
        levels = len(self._ids.levels)
        return TreesRead(
            trees, PlaceFacts(known.parents, known.level_bits, known.root_of, levels, fits, self._shared_fit_counts)
        )

    def _room(self, serving: Serving) -> Room:
        """Return the room of these providers in the contended classes."""
        room: Room = {}
        number, provider = serving.columns.at(DEMANDS, PROVIDER)
        numbers, served = {row[number] for row in serving.rows} if self.plan.contended else (), serving.demands
        for place, name in enumerate(self.plan.contended):
            (amount,) = serving.columns.at(room_of(place))
            asking = {index for index, demand in enumerate(self.plan.demands) if name in dict(demand.resources)}
            of_class = {one for one in numbers if not asking.isdisjoint(served[one])}
            room.update({(row[provider], name): row[amount] for row in serving.rows if row[number] in of_class})
        return room

    def _details_of(self, narrowed: Narrowed, fits: Mapping[int, float], extent: Extent) -> TreeDetails:
        """Return the details of the trees that are left, and of the sharing providers, if the request needs any."""
        if self._reads_providers:
            self.providers = providers_of_trees(self._tx, {*narrowed.options, *self.root_of.values()})
            return self._details.of_providers(self.providers, fits)
        found = self._details.of_extent(extent, narrowed.serving)
        if self.plan.request.same_subtree and self.root_of:
            found.parents.update(parents_in(self._tx, Extent.listed(sorted({*self.root_of.values()}))))
        return found._replace(met=self._met_by_sharing | found.met)

    # Sharing providers are the same for all trees, so their facts are computed once.

    @cached_property
    def _shared_room(self) -> Room:
        return self._room(sharing) if (sharing := self._narrowing.sharing.serving) else {}

    @cached_property
    def _shared_fit_counts(self) -> Mapping[int, float]:
        return sharing.fit_counts() if (sharing := self._narrowing.sharing.serving) else {}

    @cached_property
    def _met_by_sharing(self) -> dict[int, int]:
        return self._details.met_by(self.root_of) if self.root_of and self.plan.trait_sets else {}
