"""What can be expected of the trees of a cloud, and so which of them are read first."""

from collections.abc import Collection, Iterator, Sequence

from placement.allocators.compactness import Counts
from placement.allocators.strategy_fit import ScoredNode
from placement.candidates.bounded_reading import LeastByRoot, bounded_as_needed, bounded_first
from placement.candidates.bounds import BoundedScores, ScoresByCount
from placement.candidates.compose.open_counts import OpenCounts
from placement.candidates.compose.proposals import Proposal
from placement.candidates.frontier import LAST, Key, Portion
from placement.candidates.key_order import KeyOrder
from placement.candidates.ranking import Ranking, TreeScores
from placement.candidates.reading import SumsAsRead, promising_first, shared_by
from placement.domain.amounts import ResourceAmounts, summed
from placement.domain.overlay import Overlay
from placement.domain.planner_tree import PlannerTree
from placement.domain.tree import Tree
from placement.services.planner.ground import Ground
from placement.services.planner.overlays import overlaid


class Forecast:
    """The trees of a cloud for one request, the most promising first.

    Args:
        ground: the request in a snapshot.
        overlay: what would differ.
        wanted: how many proposals are wanted.
    """

    def __init__(self, ground: Ground, overlay: Overlay, *, wanted: int) -> None:
        composer = ground.prepared.composer
        self._ground = ground
        self._reader = overlaid(ground.reader, overlay, ground.stocks)
        scores = ScoresByCount if ground.counts_decide else BoundedScores
        asked = composer.requested, Ranking(ground.profile), ground.families
        packing = ground.packing(overlay)
        shared = shared_by(self._reader, is_simple=ground.is_simple and not overlay.avoided)
        self._scores = scores(*asked, packing, shared=shared)
        self._sums_as_read = SumsAsRead(self._reader, self._scores.classes)
        self._has_keys = shared is None and not ground.counts_decide
        """Whether trees have keys. Otherwise that of a tree is a bound on those of its proposals."""
        # What others share may be all that a tree gives; then its own sums say nothing.
        is_open = ground.counts_decide and shared is None
        self._open_counts = OpenCounts(ground.request, ground.prepared.plan) if is_open else None
        self._overlay = overlay
        # What is kept outlives the bounds of one request. Devices that judge trees change with every claim.
        self._cached_scores = TreeScores(*asked, shared=shared) if packing is None else None
        self._wanted = wanted
        self._counted = composer.counted if ground.profile.compactness else ()

    def key_of(self, expected: Key, proposal: Proposal) -> Key | None:
        """Return the key of a proposal in a tree of which a key was expected; None if it would be left out."""
        fails, _highest, root = expected
        if self._has_keys:
            return fails, self._scores.negated_score(expected, proposal.counts), root
        scores: TreeScores = self._scores
        requested: ResourceAmounts = self._ground.prepared.composer.requested
        if isinstance(scores, ScoresByCount):
            scores.note(proposal.counts)
            requested = summed(proposal.amounts.values())
            scores = scores.of_amounts(requested)
        own = self._ground.own(proposal)
        if own is None:
            key = (*scores.weight_of_pools(self._ground.sums_of_pools(self._sums_as_read, proposal)), root)
        else:
            foreign = summed([amounts for one, amounts in proposal.amounts.items() if one not in own])
            given = tuple([requested[name] - foreign.get(name, 0) for name in scores.weighed])
            key = scores.key_of(self._sums_as_read.of(root), given, proposal.counts)
        return None if key[0] and scores.filters else key

    @property
    def places_decide(self) -> bool:
        """Whether anything that was found lost by the places that it touches, so that bounds on these are worth it."""
        return (self._has_keys or self._open_counts is not None) and self._scores.falls_short

    def bounded_by_count(self, expected: Key, tree: Tree) -> Key:
        """Return a key that nothing in a tree is below, by how much there is of what a request says no number of."""
        possible = self._open_counts.amounts_in(tree) if self._open_counts else ()
        if not possible or not isinstance(self._scores, ScoresByCount):
            return expected
        return max(expected, self._scores.least_key(self._sums_as_read.of(tree.root), possible))

    def bounded(self, expected: Key, counts: Counts) -> Key:
        """Return a key that nothing is below which touches so many places of a tree of which a key was expected."""
        return self._scores.lowered(expected, counts)

    def pools(self, proposal: Proposal) -> ScoredNode:
        """Return what the trees of the sharing providers that serve a proposal alone have and use, as one."""
        classes, (_root, *row) = self._scores.classes, self._ground.sums_of_pools(self._sums_as_read, proposal)
        capacities, used = row[: len(classes)], row[len(classes) :]
        return ScoredNode(dict(zip(classes, capacities, strict=True)), dict(zip(classes, used, strict=True)))

    def key(self, tree: PlannerTree) -> Key | None:
        """Return the key of a tree as it would be; None if it would be left out."""
        amounts = [of.get(name, 0) for of in tree.totals() for name in self._scores.classes]
        (key,) = self._scores.keys([(tree.root, *amounts)])
        return None if key[0] and self._scores.filters else key

    def portions(self) -> Iterator[Portion]:
        """Yield the trees in portions."""
        if not self._reader.is_possible:
            return iter(())
        if (root := self._reader.only_root) is not None:
            return self._only(root)
        least = self._least() if self._counted else None
        if least is None:
            return promising_first(self._reader, self._scores, self._wanted, cached_order=self._cached_order)
        return bounded_first(self._reader, self._scores, self._wanted, least, cached_order=self._cached_order)

    def as_needed(self) -> Iterator[Portion]:
        """Yield the same trees, but count places only once something that was found touches more than one.

        What the keys of proposals depend on is read with them.
        """
        if not self._counted:
            found = self.portions()
        else:
            found = bounded_as_needed(
                self._reader, self._scores, self._wanted, least=self._least, cached_order=self._cached_order
            )
        return found if self._has_keys else self._sums_as_read.read(found)

    def _least(self) -> LeastByRoot | None:
        """Return bounds on the places that trees touch, None where there are no such bounds."""
        return None if self._ground.counts_decide else self._ground.least_places

    def _cached_order(self, _scores: TreeScores, found_by: Sequence[str]) -> KeyOrder | None:
        """Return the keys of all trees as they would be: those that an overlay changes are summed up anew."""
        order = self._ground.cached_order(self._cached_scores, found_by) if self._cached_scores else None
        if order is None or self._overlay.is_empty:
            return order
        changed = {one.root for one in self._ground.stocks.under(self._overlay).values()}
        elsewhere = changed | self._overlay.avoided
        gone = [key for key in order if key[2] in elsewhere]
        keys = self._scores.keys(self._reader.sums(self._scores.classes, found_by, changed)) if changed else ()
        return order.replaced(gone, keys)

    def only(self, root: int) -> Iterator[Portion]:
        """Yield one tree, unless the profile leaves it out, with what the keys of proposals depend on."""
        return self._only(root) if self._has_keys else self._sums_as_read.read(self._only(root))

    def _only(self, root: int) -> Iterator[Portion]:
        trees = self._reader.trees_of([root]).trees if self._reader.is_possible else []
        # Where proposals have keys, what they take tells which of them are left out.
        if trees and self._scores.filters and self._has_keys:
            trees = [] if self._scores.keys(self._sums([root]))[0][0] else trees
        yield Portion([(self._scores.key_of_nothing(root), tree) for tree in trees], LAST)

    def in_order(self, roots: Collection[int]) -> list[int]:
        """Return the roots of trees by what they can score, without those that the profile leaves out."""
        wanted = {*roots}
        kept = self._cached_order(self._scores, ()) if self._scores.classes else None
        keys = [key for key in kept or () if key[2] in wanted]
        unknown = wanted.difference([root for _fails, _score, root in keys])
        if unknown:
            keys = sorted([*keys, *self._scores.keys(self._sums(unknown))])
        return [root for fails, _score, root in keys if not (fails and self._scores.filters)]

    def _sums(self, roots: Collection[int]) -> list[Sequence[int]]:
        """Return what scores look at: for each tree its root, then capacities, then what is used."""
        classes = self._scores.classes
        if not classes:
            return [(root,) for root in roots]
        known = {row[0]: row for row in self._reader.sums(classes, ())}
        return [known.get(root) or (root, *[0] * 2 * len(classes)) for root in roots]
