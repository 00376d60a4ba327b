"""Searches one question: yields the proposals of its trees, best first.

Conditions and room narrow the trees, ``tree_order`` brings the most promising ones first, ``planner_trees`` composes in
them, and the caller takes as many proposals as it wants.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter

from placement.allocators.ranking_profile import ScoredNode
from placement.candidates.compose.proposals import Proposal
from placement.candidates.planner.planner_trees import MAX_BATCH, FormComposer, HostSketch, host_sketch, with_stocks
from placement.candidates.planner.question import PlannerQuestion
from placement.candidates.ranking import FAILS, MAX_SCORE, Key, TreeScores, shared_by
from placement.candidates.scores import Score, score
from placement.candidates.tree_order import Portion, TreeOrder, best_first
from placement.domain.quantities import summed
from placement.domain.tree import AS_IT_IS, NO_STOCKS, NamedMember, Overlay, PlannerTree, Tree, upwards

RankedKey = tuple[bool, float, int, int]
"""A proposal's key: its tree's key but with its own score, followed by its number in the tree."""

FIRST = 0
"""The number of a tree's best proposal."""

RankedProposal = tuple[RankedKey, Proposal]


class ProposalKeys:
    """The keys of proposals, and the order of the trees that they are in."""

    def __init__(self, question: PlannerQuestion, overlay: Overlay, *, limit: int) -> None:
        reader = question.reader(overlay)
        shared = shared_by(reader, is_simple=question.is_simple and not overlay.avoided)
        varies, fragmentation = question.counts_decide, question.tree_fragmentation(overlay)
        self._scores = TreeScores(*question.scored_by, fragmentation, shared=shared, varies=varies)
        self._has_keys = not (shared or varies)
        """Whether a tree's key is exact except for places; if not, it only bounds its proposals' keys."""
        self._question = question
        counted = question.composer.counted and question.profile.compactness and not varies
        least = partial(question.least_places, overlay) if counted else None
        self.order = TreeOrder(reader, self._scores, limit=limit, kept=question.cloud.kept, least=least)

    def key_of(self, expected: Key, proposal: Proposal, changed: PlannerTree | None = None) -> Key | None:
        """Return a proposal's key; None if the profile filters it out."""
        if self._has_keys:
            return self.order.final(expected, proposal.counts, is_as_read=changed is None)
        _fails, _negated, root = expected
        scores, requested = self._scores, self._question.composer.requested
        if scores.varies:
            requested = summed(proposal.amounts.values())
            scores = scores.of_amounts(requested)
        own = self._question.own(proposal)
        if own is None:
            key = (*scores.weight_of_pools(self._sums_of_pools(proposal)), root)
        else:
            foreign = summed([amounts for provider, amounts in proposal.amounts.items() if provider not in own])
            own_amounts = tuple([requested[name] - foreign.get(name, 0) for name in scores.weighed])
            row = self._row_of(changed) if changed else self.order.row_of(root)
            self.order.note(proposal.counts)
            key = scores.key_of(row, own_amounts, proposal.counts)
        return None if key[FAILS] and scores.filters else key

    def pools(self, proposal: Proposal) -> ScoredNode:
        """Return as one node the trees of the sharing providers that alone serve a proposal."""
        classes, (_root, *row) = self._scores.classes, self._sums_of_pools(proposal)
        capacities, used = row[: len(classes)], row[len(classes) :]
        return ScoredNode(dict(zip(classes, capacities, strict=True)), dict(zip(classes, used, strict=True)))

    def _sums_of_pools(self, proposal: Proposal) -> Sequence[int]:
        root_of = self._question.cloud.reader.root_of
        return self.order.row_of_all({root_of[provider] for provider in proposal.amounts if provider in root_of})

    def key(self, tree: PlannerTree) -> Key | None:
        """Return the key of a changed tree; None if the profile filters it out."""
        if self._scores.varies:
            return False, -MAX_SCORE, tree.root
        key = self._scores.key_of_whole(self._row_of(tree))
        return None if key[FAILS] and self._scores.filters else key

    def _row_of(self, tree: PlannerTree) -> Sequence[int]:
        """Return the input of scores for a tree: its root, then its capacity, then its usage of each class."""
        return tree.root, *[amounts.get(name, 0) for amounts in tree.totals() for name in self._scores.classes]


class PlannerSearch:
    """The search of one question, in the cloud as it is or under an overlay.

    Roughly ``limit`` proposals will be pulled. So many trees, but no more than ``first_trees``, are built in detail
    ahead at first, then twice as many each time, up to ``MAX_BATCH``.
    """

    def __init__(
        self,
        question: PlannerQuestion,
        overlay: Overlay = AS_IT_IS,
        *,
        limit: int | None = None,
        first_trees: int = MAX_BATCH,
    ) -> None:
        overlay = overlay.without(question.avoided) if question.avoided else overlay
        limit = limit or question.request.limit
        self.composer = question.composer
        self.searched = 0
        self._question = question
        self._overlay = overlay
        # Conditions and room narrow the trees to those that the reader reads, little of each.
        self._reader = question.reader(overlay)
        # Rank: the most promising come first; places are counted only if scores fall short.
        self._keys = ProposalKeys(question, overlay, limit=limit)
        # Compose: only in these trees, which are built in detail with those likely to come next.
        self._forms = FormComposer(question, overlay)
        self._upcoming: list[tuple[Key, Tree]] = []
        """Trees that may be wanted, the most promising last."""
        self._ahead = min(limit, first_trees)
        # Limit: ``ranked`` is lazy, so that ten proposals cost no more trees than ten need.
        self._trees: dict[int, Tree | None] = {}
        """The trees read so far, by root; None for those in which a demand has no option."""
        self._expected: dict[int, tuple[Key, Tree, PlannerTree, Collection[int]]] = {}
        """Trees taken from: their keys by now, options before, details by now, and the changed providers."""

    @property
    def members(self) -> Mapping[int, NamedMember]:
        """The providers of all trees read in detail."""
        return self._question.details.members

    @property
    def complete(self) -> bool:
        """Whether no search in a tree was cut off."""
        return self._forms.complete

    @property
    def exhausted(self) -> Mapping[int, bool]:
        """By root, the trees where nothing was found, and whether that is proved."""
        return self._forms.exhausted

    def proposals(self, *, only: int | None = None) -> Iterator[Proposal]:
        """Yield proposals, best first; ``only`` restricts them to the tree with that root."""
        return map(itemgetter(1), self.ranked(only=only))

    def distinct(self) -> Iterator[Proposal]:
        """Yield proposals, best first, without repeating what sharing providers alone serve."""
        earlier = set[object]()
        for _key, proposal in self._composed(_once_of_pools(self._hopeful(self._keys.order.portions()))):
            amounts_of = proposal.amounts.items()
            taken = frozenset([(id_, portion) for id_, amounts in amounts_of for portion in amounts.items()])
            if (identity := (taken, frozenset(proposal.mappings.items()))) not in earlier:
                earlier.add(identity)
                yield proposal

    def ranked(self, *, only: int | None = None) -> Iterator[RankedProposal]:
        """Yield proposals with their keys, best first; ``only`` restricts them to the tree with that root."""
        order = self._keys.order
        return self._composed(self._hopeful(order.portions() if only is None else order.only(only)))

    def expected(self, root: int, overlay: Overlay) -> RankedKey | None:
        """Return a lower bound on the keys in a tree that an overlay takes more from; None if it is ruled out."""
        for tree, as_it_is in self._in_detail([root]):
            part = overlay.within(as_it_is.parents)
            details = as_it_is.under(part)
            if key := self._keys.key(details):
                self._expected[root] = key, tree, details, part.changes.keys()
                return (*key, FIRST)
        self._forms.rule_out(root)
        return None

    def again(self, root: int) -> RankedProposal | None:
        """Return the best proposal with its key in a tree as of the last ``expected``; None if there is none."""
        key, tree, details, providers = self._expected[root]
        composer, stocks = self.composer, {id_: details.stocks.get(id_, NO_STOCKS) for id_ in providers}
        changed = with_stocks(tree, composer.plan, stocks)
        if not all(changed.options) or composer.is_hopeless(changed) or composer.lacks_room(changed):
            self._forms.rule_out(root)
            return None
        for proposal in self._forms.proposals_in(changed, details):
            own = self._keys.key_of(key, proposal, details)
            return own and ((*own, FIRST), proposal)
        return None

    def sketch(self, root: int) -> HostSketch | None:
        """Return a sketch of an unchanged tree, if each demand has an option in it."""
        return next((host_sketch(self.composer.plan, *detail) for detail in self._in_detail([root])), None)

    def most_in(self, roots: Collection[int], *, members: int) -> int:
        """Return for how many members some trees have room if nobody takes of them yet; by a few sums, so at most."""
        if self._question.profile.filters:
            return members  # Where the best way is filtered out, another may not be, so nothing is proved of that tree.
        placed = 0
        for tree, details in self._in_detail(roots):
            amounts_left = details.free_amounts().items()
            room = {(id_, name): float(amount) for id_, amounts in amounts_left for name, amount in amounts.items()}
            roomy, number = replace(tree, room=room), 1
            while placed < members and not self.composer.lacks_room(roomy, members=number):
                number += 1
                placed += 1
        return placed

    def _in_detail(self, roots: Collection[int]) -> Iterator[tuple[Tree, PlannerTree]]:
        """Yield unchanged trees with their details, if each demand has an option in it."""
        trees = self._read(roots)
        return zip(trees, self._question.details.built(trees), strict=True)

    def _read(self, roots: Collection[int]) -> list[Tree]:
        """Return those of some trees in which each demand has an option, reading each of them once."""
        if unread := [root for root in roots if root not in self._trees]:
            self._trees |= dict.fromkeys(unread)
            self._trees |= {tree.root: tree for tree in self._reader.trees_of(unread)}
        return [tree for root in sorted(roots) if (tree := self._trees[root])]

    def _composed(self, portions: Iterator[Portion]) -> Iterator[RankedProposal]:
        def noted_ahead(portion: Portion) -> Portion:
            self._upcoming = sorted(self._upcoming + portion.trees, key=itemgetter(0), reverse=True)
            return portion

        return best_first(map(noted_ahead, portions), self._ranked)

    def _build(self, tree: Tree) -> None:
        """Build a tree in detail that is wanted now, and the next ones with it."""
        details, ahead = self._question.details, list[Tree]()
        if details.has(tree):
            return
        while self._upcoming and len(ahead) < self._ahead:
            _key, upcoming = self._upcoming.pop()
            if not details.has(upcoming):
                ahead.append(upcoming)
        details.built([tree, *ahead])
        self._ahead = min(2 * self._ahead, MAX_BATCH)

    def in_order(self, roots: Collection[int]) -> list[int]:
        """Return the roots, most promising first by the trees' sums, without trees that the profile filters out."""
        return self._keys.order.in_order(roots)

    def serving(self, roots: Collection[int]) -> set[int]:
        """Return the roots of those trees in which each demand has an option."""
        return {tree.root for tree in self._read(roots)}

    def read(self, roots: Collection[int]) -> None:
        """Read trees in detail in one batch."""
        self._question.details.built(self._read(roots))

    def roots(self) -> Iterator[int]:
        """Yield the roots of trees where the request may fit, most promising first, without composing."""
        for trees, _bound in self._hopeful(self._keys.order.portions(is_bounded=True)):
            for _key, tree in sorted(trees, key=itemgetter(0)):
                yield tree.root

    def _hopeful(self, portions: Iterator[Portion]) -> Iterator[Portion]:
        """Yield the portions without trees that can be ruled out before their details are read."""
        for trees, bound in portions:
            self._trees |= {tree.root: tree for _key, tree in trees}
            hopeful = [(key, tree) for key, tree in trees if not self.composer.is_hopeless(tree)]
            self.searched += len(hopeful)
            roomy = [(key, tree) for key, tree in hopeful if not self.composer.lacks_room(tree)]
            yield Portion(self._serving(roomy), bound)

    def _serving(self, trees: list[tuple[Key, Tree]]) -> list[tuple[Key, Tree]]:
        """Prune trees that provably serve nothing: worth it in a large portion, or once one has served nothing."""
        if len(trees) <= MAX_BATCH and not self.exhausted:
            return trees
        lacking = self._question.ruled_out([tree for _key, tree in trees], self._overlay)
        return [(key, tree) for key, tree in trees if tree.root not in lacking]

    def _ranked(self, expected: Key, tree: Tree) -> Iterator[RankedProposal]:
        """Compose in a tree; yield each proposal with the key that its places give it."""
        self._build(tree)
        for number, proposal in enumerate(self._forms.composed(tree)):
            if key := self._keys.key_of(expected, proposal):
                yield (*key, number), proposal

    def allows(self, proposal: Proposal) -> bool:
        """Tell whether inventories, read already, allow what a proposal takes, unit rules included."""
        stocks = self._forms.details_by_root[proposal.root].stocks
        amounts_of = proposal.amounts.items()
        taken = [(stocks[id_].get(name), amount) for id_, amounts in amounts_of for name, amount in amounts.items()]
        return all(stock is not None and stock.allows(amount) for stock, amount in taken)

    def roots_of(self, proposal: Proposal) -> frozenset[int]:
        """Return the roots of the trees that a proposal takes from."""
        return frozenset([self.members[provider].root_id for provider in proposal.amounts])

    def inside(self, places: Collection[int]) -> frozenset[str]:
        """Return the uuids of all providers read so far in some places, anchors included."""
        if not places:
            return frozenset()
        members = self.members
        parents = {id_: member.parent_id for id_, member in members.items()}
        return frozenset(m.uuid for m in members.values() if not set(places).isdisjoint(upwards(m.id, parents)))

    def score(self, proposal: Proposal) -> Score:
        """Return the score of a proposal with its parts."""
        profile, own = self._question.profile, self._question.own(proposal)
        requested = summed(proposal.amounts.values())
        if own is None:
            # Sharing providers alone serve: their trees count as one, without places.
            nowhere = (0,) * len(proposal.touched)
            return score(profile, requested, self._keys.pools(proposal), own=requested, touched=nowhere)
        tree = self._forms.details_by_root[proposal.root]
        node, judge = ScoredNode(*tree.totals()), self._question.cloud.judge
        fragmentation = judge.score(tree.free_amounts(), proposal.amounts) if judge else None
        own_amounts, touched = summed(own.values()), proposal.touched
        return score(profile, requested, node, own=own_amounts, touched=touched, fragmentation=fragmentation)


def _once_of_pools(portions: Iterable[Portion]) -> Iterator[Portion]:
    """Yield trees, skipping those that contribute nothing and share the same as an earlier one, as thousands may.

    The trees of the pools themselves are always tried, as a group may ask for everything a tree has of a class.
    """
    earlier: set[tuple[tuple[int, ...], ...]] = set()

    def is_new(tree: Tree) -> bool:
        if any(tree.root_of.get(provider, tree.root) == tree.root for row in tree.options for provider in row):
            return True
        options = tuple(map(tuple, tree.options))
        was_seen = options in earlier
        earlier.add(options)
        return not was_seen

    for trees, bound in portions:
        yield Portion([keyed for keyed in sorted(trees, key=itemgetter(0)) if is_new(keyed[1])], bound)
