"""Compose one planner request in trees read in detail, only once for trees of one canonical form."""

from collections.abc import Iterator, Sequence

from placement.candidates.canonical import Memo
from placement.candidates.compose.proposals import Proposal, Proposals
from placement.candidates.host_sketches import FoundInHost, host_sketch, read_off
from placement.candidates.planner.question import PlannerQuestion
from placement.domain.overlay import Overlay
from placement.domain.tree import PlannerTree, Tree


class FormComposer:
    """Composes the proposals for one request, tree by tree.

    Args:
        question: the request.
        overlay: the assumed changes.
    """

    def __init__(self, question: PlannerQuestion, overlay: Overlay) -> None:
        self._details = question.details
        self._steps = question.steps
        self._prepared, self._composer = question.prepared, question.prepared.composer
        self._kept = question.kept_proposals
        self._overlay = overlay
        self._models: Memo[FoundInHost] = Memo()
        self.known: dict[int, PlannerTree] = {}
        """The trees composed in, by root id."""
        self.exhausted: dict[int, bool] = {}
        """By root, the trees where nothing was found, and whether that is proved."""
        self._cut_off: set[int] = set()

    @property
    def complete(self) -> bool:
        """Whether the last search in each tree ran to its end."""
        return not self._cut_off

    def composed(self, trees: Sequence[Tree]) -> Iterator[Sequence[Proposal]]:
        """Yield the proposals of each tree."""
        for tree, as_it_is in zip(trees, self._details.of(trees), strict=True):
            details = as_it_is.under(self._overlay)
            yield self.found(tree, details, is_as_it_is=details is as_it_is)

    def rule_out(self, root: int) -> None:
        """Record that a tree is exhausted."""
        self.exhausted[root] = True
        self._cut_off.discard(root)

    def found(self, tree: Tree, details: PlannerTree, *, is_as_it_is: bool = False) -> Sequence[Proposal]:
        """Return the proposals in one tree with these details, or those that were found in one of the same form."""
        kept = self._kept
        if kept is None and not is_as_it_is:
            return self._noted(details, self._composer.proposals(tree, details, self._steps.budget_now))
        host = host_sketch([self._prepared.plan], [tree], details)
        model = self._models.get(host.form) if is_as_it_is else None
        if model is None and kept is not None:
            model = kept.get(host.form)
        if model is None:
            model = FoundInHost(host, self._composer.proposals(tree, details, self._steps.budget_now))
            if kept is not None:
                kept.remember(model)
            if is_as_it_is:
                # Even if it was cut off: to search each tree of this form would use up as many steps again.
                self._models.remember(host.form, model)
        proposals = self._noted(details, model.proposals)
        return proposals if model.host is host else [read_off(one, model.host, host) for one in proposals]

    def _noted(self, details: PlannerTree, found: Proposals) -> Sequence[Proposal]:
        """Record what was found in a tree, and return it."""
        root = details.root
        self.known[root] = details
        (self._cut_off.discard if found.complete else self._cut_off.add)(root)
        if not found.found:
            self.exhausted[root] = found.complete
        return found.found
