"""Ranks what is proposed in the trees of a cloud for one question, as it is or under an overlay."""

from collections.abc import Iterator, Sequence
from functools import partial

from placement.allocators.strategy_fit import ScoredNode
from placement.candidates.compose.proposals import Proposal
from placement.candidates.frontier import FAILS, Key, Portion
from placement.candidates.planner.question import PlannerQuestion
from placement.candidates.ranking import ScoresByCount, TreeScores, shared_by
from placement.candidates.scores import MAX_SCORE
from placement.candidates.tree_order import SumsAsRead, TreeOrder
from placement.domain.overlay import Overlay
from placement.domain.quantities import ResourceAmounts, summed
from placement.domain.tree import PlannerTree


class ProposalKeys:
    """The keys of proposals, and the order of the trees that they are in.

    Args:
        question: the request in a snapshot.
        overlay: the assumed changes.
        wanted: how many proposals are wanted.
    """

    def __init__(self, question: PlannerQuestion, overlay: Overlay, *, wanted: int) -> None:
        reader = question.reader(overlay)
        shared = shared_by(reader, is_simple=question.is_simple and not overlay.avoided)
        scores = ScoresByCount if question.counts_decide else TreeScores
        self._scores = scores(*question.asked, question.tree_fragmentation(overlay), shared=shared)
        self._has_keys = not (shared or question.counts_decide)
        """Whether a tree's key is exact except for places; if not, it only bounds its proposals' keys."""
        self._sums_as_read = SumsAsRead(reader, self._scores.classes)
        self._question = question
        counted = question.prepared.composer.counted and question.profile.compactness and not question.counts_decide
        least = partial(question.least_places, overlay) if counted else None
        self.order = TreeOrder(reader, self._scores, wanted=wanted, kept=question.cloud.kept, least=least)

    def key_of(self, expected: Key, proposal: Proposal, changed: PlannerTree | None = None) -> Key | None:
        """Return a proposal's key; None if the profile filters it out.

        Args:
            expected: the expected key of its tree.
            proposal: the proposal.
            changed: the tree, if it is not as it was read.
        """
        if self._has_keys:
            return self.order.final(expected, proposal.counts, is_as_read=changed is None)
        _fails, _negated, root = expected
        scores: TreeScores = self._scores
        requested: ResourceAmounts = self._question.prepared.composer.requested
        if isinstance(scores, ScoresByCount):
            requested = summed(proposal.amounts.values())
            scores = scores.of_amounts(requested)
        own = self._question.own(proposal)
        if own is None:
            key = (*scores.weight_of_pools(self._question.sums_of_pools(self._sums_as_read, proposal)), root)
        else:
            foreign = summed([amounts for provider, amounts in proposal.amounts.items() if provider not in own])
            given = tuple([requested[name] - foreign.get(name, 0) for name in scores.weighed])
            row = self._row_of(changed) if changed else self._sums_as_read.of(root)
            self.order.note(proposal.counts)
            key = scores.key_of(row, given, proposal.counts)
        return None if key[FAILS] and scores.filters else key

    def pools(self, proposal: Proposal) -> ScoredNode:
        """Return as one node the trees of the sharing providers that alone serve a proposal."""
        classes, (_root, *row) = self._scores.classes, self._question.sums_of_pools(self._sums_as_read, proposal)
        capacities, used = row[: len(classes)], row[len(classes) :]
        return ScoredNode(dict(zip(classes, capacities, strict=True)), dict(zip(classes, used, strict=True)))

    def key(self, tree: PlannerTree) -> Key | None:
        """Return the key of a changed tree; None if the profile filters it out."""
        if self._question.counts_decide:
            return False, -MAX_SCORE, tree.root
        key = self._scores.key_of_whole(self._row_of(tree))
        return None if key[FAILS] and self._scores.filters else key

    def _row_of(self, tree: PlannerTree) -> Sequence[int]:
        """Return the input of scores for a tree: its root, then its capacity, then its usage of each class."""
        return tree.root, *[of.get(name, 0) for of in tree.totals() for name in self._scores.classes]

    def portions(self, only: int | None = None) -> Iterator[Portion]:
        """Yield the trees in portions, or only one tree, reading what proposals' keys depend on."""
        portions = self.order.portions() if only is None else self.order.only(only)
        return portions if self._has_keys else self._sums_as_read.read(portions)
