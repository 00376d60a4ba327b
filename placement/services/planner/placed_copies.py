"""Count how many copies of a request with rules about places fit, composing in one tree of each kind."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from placement.allocators.budget import Budget
from placement.allocators.bundle_packing import Copies, exactly
from placement.candidates.headroom.placed import MAX_PLANNED, MAX_WAYS, TreeFilling, beyond_reach, under
from placement.candidates.host_sketches import host_sketch
from placement.candidates.planner.planner_search import search_for
from placement.candidates.planner.question import PlannerQuestion
from placement.cloud.providers import Ints
from placement.domain.overlay import Overlay
from placement.domain.planner_request import PlannerRequest
from placement.domain.tree import PlannerTree, Tree
from placement.services.planner.changes import emptied
from placement.services.planner.questions import Composers, PlannerOptions, question_for
from placement.store.connection.unit_of_work import Transaction

MAX_TRIES = 600
"""How often to compose for one request; trees not reached by then get bounds."""

STEPS_OF_PACKING = 200_000

READ_TOGETHER = 500
"""How many trees are read in detail at a time."""


def placed_copies(
    tx: Transaction,
    request: PlannerRequest,
    options: PlannerOptions,
    *,
    overlay: Overlay,
    like: Mapping[int, int],
    kinds: Ints,
) -> "PlacedCopies":
    """Prepare to count the copies of one request, with assumed changes to the cloud.

    Args:
        tx: the transaction.
        request: the request.
        options: the operator's options.
        overlay: assumed changes to existing trees.
        like: the tree that each hypothetical tree is modelled on.
        kinds: the kind of each tree under that overlay, by index.
    """
    # Scores do not matter here.
    options = replace(options, judge=None)
    request = replace(request, limit=1, per_tree=1, explain=False)
    composers = Composers()
    question = question_for(tx, request, options, composers=composers)
    every = replace(request, per_tree=MAX_WAYS)
    filling = TreeFilling(
        question.prepared.plan,
        question.prepared.composer,
        None if request.paths else composers.prepared(every, options).composer,
        steps=composers.budget,
        packing=Budget(STEPS_OF_PACKING),
        tries=Budget(MAX_TRIES),
    )
    return PlacedCopies(tx, question, filling=filling, overlay=overlay, like=like, kinds=kinds)


class PlacedCopies:
    """Counts the copies of one request, with assumed changes to the cloud.

    Args:
        tx: the snapshot.
        question: the request in it.
        filling: counts the copies in one tree.
        overlay: assumed changes to existing trees.
        like: the tree that each hypothetical tree is modelled on.
        kinds: the kind of each tree under that overlay, by index.
    """

    def __init__(
        self,
        tx: Transaction,
        question: PlannerQuestion,
        *,
        filling: TreeFilling,
        overlay: Overlay,
        like: Mapping[int, int],
        kinds: Ints,
    ) -> None:
        self._tx = tx
        self._question = question
        self._filling = filling
        self._overlay = overlay
        self._like = like
        self._kinds = kinds
        self._each = _each(question.request)
        self._known: dict[object, Copies] = {}

    @property
    def avoided(self) -> Collection[int]:
        """The roots of trees that the request leaves out."""
        return self._question.avoided

    def together(self, most: int) -> int:
        """Return a lower bound for all trees together if there are sharing providers: plan copies until none fits."""
        if not self._question.has_sharing:
            return 0
        overlay = self._overlay
        for copies in range(min(most, MAX_PLANNED)):
            proposal = next(search_for(self._question, overlay).proposals(), None)
            if proposal is None:
                return copies
            overlay = overlay.taking(proposal.amounts, held=[lock.provider for lock in proposal.locks])
        return min(most, MAX_PLANNED)

    def kinds(self, trees: Ints) -> Ints:
        """Return the kind of each tree; if there are sharing providers, each tree is a kind of its own."""
        return trees if self._question.has_sharing else self._kinds[trees]

    def in_trees(self, bounds: Mapping[int, int]) -> dict[int, Copies]:
        """Return how many copies fit into trees, by root.

        ``bounds`` has for each root how many copies its sums allow at most.
        """
        here = {root: most for root, most in bounds.items() if root not in self._like}
        found = self._counted(self._overlay, here)
        further = {self._like[root]: most for root, most in bounds.items() if root in self._like}
        empty = self.in_empty(further) if further else {}
        return found | {root: empty[self._like[root]] for root in bounds if root in self._like}

    def in_empty(self, bounds: Mapping[int, int]) -> dict[int, Copies]:
        """Return how many copies would fit into trees like these if they were empty, by root."""
        roots = {root: self._like.get(root, root) for root in bounds}
        overlay = emptied(self._tx, sorted({*roots.values()}), self._overlay)
        found = self._counted(overlay, {roots[root]: most for root, most in bounds.items()})
        return {root: found[of] for root, of in roots.items()}

    def _counted(self, overlay: Overlay, bounds: Mapping[int, int]) -> dict[int, Copies]:
        found = dict.fromkeys(bounds, exactly(0))
        question, reader = self._question, self._question.reader(overlay)
        for roots in _portions_of(sorted(bounds)):
            trees = reader.trees_of(roots)
            for tree, details in zip(trees, question.details.of(trees), strict=True):
                found[tree.root] = self._of(tree, details.under(overlay), bounds[tree.root])
        return found

    def _of(self, tree: Tree, details: PlannerTree, most: int) -> Copies:
        """Return how many copies fit into one tree; trees of the same canonical form have the same number."""
        if details.foreign_providers:
            return self._filling.copies(tree, details, most)
        if self._each:
            plan = self._filling.plan
            tree, details = under(beyond_reach(self._each, details, most), plan, tree, details)
        form = (host_sketch([self._filling.plan], [tree], details).form, most)
        if form not in self._known:
            self._known[form] = self._filling.copies(tree, details, most)
        return self._known[form]


def _each(request: PlannerRequest) -> Mapping[str, int]:
    """Return how much of each class a copy takes from one provider at most; empty where amounts alone do not decide."""
    open_ended = [one.everything or one.per_subtree or one.device is not None for one in request.groups]
    # An exclusive request depends on whether anything is in use.
    if request.exclusive or request.paths or any(open_ended):
        return {}
    each: Counter[str] = Counter()
    for one in request.groups:
        each.update({name: one.count * amount for name, amount in one.group.resources.items()})
    return each


def _portions_of(roots: Sequence[int]) -> Iterator[Sequence[int]]:
    for first in range(0, len(roots), READ_TOGETHER):
        yield roots[first : first + READ_TOGETHER]
