"""Bound what the trees of a cloud can score, and so decide which to read first."""

from collections.abc import Collection, Iterator, Sequence

from placement.allocators.strategy_fit import ScoredNode
from placement.candidates.bounds import BoundedScores, ScoresByCount
from placement.candidates.compose.proposals import Proposal
from placement.candidates.frontier import FAILS, LAST, ROOT, Key, Portion
from placement.candidates.key_order import KeyColumns, KeyOrder
from placement.candidates.planner.question import PlannerQuestion
from placement.candidates.ranking import TreeScores
from placement.candidates.reading import (
    LeastByRoot,
    SumsAsRead,
    bounded_as_needed,
    bounded_first,
    promising_first,
    shared_by,
)
from placement.candidates.tree_reader import TreeReader
from placement.domain.overlay import Overlay
from placement.domain.planner_tree import PlannerTree
from placement.domain.quantities import ResourceAmounts, summed


def order_for(question: PlannerQuestion, overlay: Overlay, *, wanted: int) -> "TreeOrder":
    """Return the trees of a cloud for one request, most promising first.

    Args:
        question: the request in a snapshot.
        overlay: the assumed changes.
        wanted: how many proposals are wanted.
    """
    reader = question.reader(overlay)
    scores = ScoresByCount if question.counts_decide else BoundedScores
    asked = question.asked
    fragmentation = question.tree_fragmentation(overlay)
    shared = shared_by(reader, is_simple=question.is_simple and not overlay.avoided)
    return TreeOrder(
        question,
        overlay,
        wanted=wanted,
        reader=reader,
        scores=scores(*asked, fragmentation, shared=shared),
        # What is kept outlives the bounds of one request. Fragmentation changes with every claim, so it is not kept.
        kept_scores=TreeScores(*asked, shared=shared) if fragmentation is None else None,
        shares=shared is not None,
    )


class TreeOrder:
    """The trees of a cloud for one request, most promising first.

    Args:
        question: the request in a snapshot.
        overlay: the assumed changes.
        wanted: how many proposals are wanted.
        reader: reads the trees under the overlay.
        scores: bounds what proposals in them can score.
        kept_scores: the scores that trees have whatever is found in them; None if these change with every claim.
        shares: whether sharing providers may serve any of the request.
    """

    def __init__(
        self,
        question: PlannerQuestion,
        overlay: Overlay,
        *,
        wanted: int,
        reader: TreeReader,
        scores: BoundedScores,
        kept_scores: TreeScores | None,
        shares: bool,
    ) -> None:
        self._question = question
        self._overlay = overlay
        self._wanted = wanted
        self._reader = reader
        self._scores = scores
        self._kept_scores = kept_scores
        self._sums_as_read = SumsAsRead(reader, scores.classes)
        self._has_keys = not (shares or question.counts_decide)
        """Whether a tree's key is exact except for places; if not, it only bounds its proposals' keys."""
        self._counted = question.prepared.composer.counted if question.profile.compactness else ()

    def key_of(self, expected: Key, proposal: Proposal, changed: PlannerTree | None = None) -> Key | None:
        """Return a proposal's key; None if the profile filters it out.

        Args:
            expected: the expected key of its tree.
            proposal: the proposal.
            changed: the tree, if it is not as it was read.
        """
        fails, _negated, root = expected
        if self._has_keys:
            return fails, self._scores.negated_score(expected, proposal.counts), root
        scores: TreeScores = self._scores
        requested: ResourceAmounts = self._question.prepared.composer.requested
        if isinstance(scores, ScoresByCount):
            scores.note(proposal.counts)
            requested = summed(proposal.amounts.values())
            scores = scores.of_amounts(requested)
        own = self._question.own(proposal)
        if own is None:
            key = (*scores.weight_of_pools(self._question.sums_of_pools(self._sums_as_read, proposal)), root)
        else:
            foreign = summed([amounts for provider, amounts in proposal.amounts.items() if provider not in own])
            given = tuple([requested[name] - foreign.get(name, 0) for name in scores.weighed])
            row = self._row_of(changed) if changed else self._sums_as_read.of(root)
            key = scores.key_of(row, given, proposal.counts)
        return None if key[FAILS] and scores.filters else key

    def pools(self, proposal: Proposal) -> ScoredNode:
        """Return as one node the trees of the sharing providers that alone serve a proposal."""
        classes, (_root, *row) = self._scores.classes, self._question.sums_of_pools(self._sums_as_read, proposal)
        capacities, used = row[: len(classes)], row[len(classes) :]
        return ScoredNode(dict(zip(classes, capacities, strict=True)), dict(zip(classes, used, strict=True)))

    def key(self, tree: PlannerTree) -> Key | None:
        """Return the key of a changed tree; None if the profile filters it out."""
        (key,) = self._scores.keys([self._row_of(tree)])
        return None if key[FAILS] and self._scores.filters else key

    def _row_of(self, tree: PlannerTree) -> Sequence[int]:
        """Return the input of scores for a tree: its root, then its capacity, then its usage of each class."""
        return tree.root, *[of.get(name, 0) for of in tree.totals() for name in self._scores.classes]

    def portions(self) -> Iterator[Portion]:
        """Yield the trees in portions."""
        if not self._reader.is_possible:
            return iter(())
        if (root := self._reader.only_root) is not None:
            return self._only(root)
        least = self._least() if self._counted else None
        if least is None:
            return promising_first(self._reader, self._scores, self._wanted, cached_order=self._kept_order)
        return bounded_first(self._reader, self._scores, self._wanted, least, cached_order=self._kept_order)

    def as_needed(self) -> Iterator[Portion]:
        """Yield the trees in portions, but count places only once a proposal touches more than one.

        The sums that proposals' keys depend on are read along.
        """
        if not self._counted:
            portions = self.portions()
        else:
            portions = bounded_as_needed(
                self._reader, self._scores, self._wanted, least=self._least, cached_order=self._kept_order
            )
        return portions if self._has_keys else self._sums_as_read.read(portions)

    def _least(self) -> LeastByRoot | None:
        """Return lower bounds on the places touched in each tree; None where there are none."""
        return None if self._question.counts_decide else self._question.least_places(self._overlay)

    def _kept_order(self, _scores: TreeScores, found_by: Sequence[str]) -> KeyOrder | None:
        """Return the kept keys of all trees, worked out anew for changed trees; None if none are kept."""
        order = self._question.kept_order(self._kept_scores, found_by) if self._kept_scores else None
        if order is None or self._overlay.is_empty:
            return order
        changed = {*self._reader.serving.columns.providers.root_of(self._overlay.changes).values()}
        elsewhere = changed | self._overlay.avoided
        keys = self._scores.keys(self._reader.sums(self._scores.classes, found_by, changed)) if changed else ()
        new = KeyColumns.from_keys(keys)
        return KeyOrder(order.keys.with_changes(elsewhere.difference(new.roots.tolist()), new))

    def only(self, root: int) -> Iterator[Portion]:
        """Yield one tree, unless the profile filters it out, reading what proposals' keys depend on."""
        return self._only(root) if self._has_keys else self._sums_as_read.read(self._only(root))

    def _only(self, root: int) -> Iterator[Portion]:
        trees = self._reader.trees_of([root]) if self._reader.is_possible else []
        # Where a tree's key is only a bound, ``key_of`` filters its proposals.
        if trees and self._scores.filters and self._has_keys:
            trees = [] if self._scores.keys(self._sums([root]))[0][FAILS] else trees
        yield Portion([(self._scores.key_of_nothing(root), tree) for tree in trees], LAST)

    def in_order(self, roots: Collection[int]) -> list[int]:
        """Return the roots by what their trees can score, without trees that the profile filters out."""
        wanted = {*roots}
        kept = self._kept_order(self._scores, ()) if self._scores.classes else None
        keys = [key for key in kept or () if key[ROOT] in wanted]
        unknown = wanted.difference([root for _fails, _negated, root in keys])
        if unknown:
            keys = sorted([*keys, *self._scores.keys(self._sums(unknown))])
        return [root for fails, _negated, root in keys if not (fails and self._scores.filters)]

    def _sums(self, roots: Collection[int]) -> list[Sequence[int]]:
        """Return the input of scores, a row per tree: its root, then capacities, then usages."""
        classes = self._scores.classes
        if not classes:
            return [(root,) for root in roots]
        rows = {row[0]: row for row in self._reader.sums(classes, ())}
        return [rows.get(root) or (root, *[0] * 2 * len(classes)) for root in roots]
