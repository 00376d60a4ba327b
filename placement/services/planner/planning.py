"""Plans one request inside a transaction: which trees, what in them, the best first. Reads only."""

from collections.abc import Collection, Iterator, Sequence
from operator import itemgetter

from placement.allocators.strategy_fit import ScoredNode
from placement.candidates.compose.proposals import Proposal
from placement.candidates.frontier import Batches, Keyed, Portion, best_first
from placement.candidates.packing import TreePacking, WantedOfHost, wanted_by
from placement.candidates.scores import Score, score
from placement.domain.amounts import summed
from placement.domain.ancestry import upwards
from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Plan
from placement.errors import InvalidAt
from placement.services.planner.composers import Composers, PlannerOptions, Prepared
from placement.services.planner.details import DetailedComposer, Details
from placement.services.planner.forecast import Forecast
from placement.services.planner.overlays import changed_providers
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.names import ids_for
from placement.store.search.narrowing import Narrowing
from placement.store.search.summaries import Summaries

LARGEST_BATCH = 64
"""Trees whose details are read together: not many more than are needed, and not each by itself."""

RankedProposal = tuple[tuple[bool, float, int, int], Proposal]
"""A proposal, led by the key of its tree with the score that it has, and its number in the tree."""


class Planning:
    """One request being planned.

    Args:
        tx: the transaction.
        request: the request.
        options: the operator's.
        composers: what has been worked out is taken from here, and kept here.
        overlay: what would differ from the cloud as it is.

    Raises:
        InvalidAt: the request names a class, trait or level that does not exist.
    """

    def __init__(
        self,
        tx: Transaction,
        request: PlannerRequest,
        options: PlannerOptions,
        composers: Composers | None = None,
        *,
        overlay: Overlay = AS_IT_IS,
    ) -> None:
        self._tx = tx
        self._request = request
        self._options = options
        composers = composers or Composers()
        prepared = composers.prepared(request, options)
        _check_names(tx, request, prepared.plan)
        self.prepared = prepared
        self.searched = 0
        self._profile = options.profile
        self._levels = prepared.levels
        # Narrow: each demand by itself, as for candidates; what rules say of several providers is left to composing.
        narrowing = Narrowing(tx, prepared.plan, ids_for(tx, prepared.plan), spared=overlay.released)
        # Read: little of each tree, the most promising first; the forecast counts places only if scores fall short.
        self._details = Details(tx, prepared.levels, with_units=bool(request.paths), overlay=overlay)
        self._forecast = Forecast(
            tx,
            narrowing,
            profile=options.profile,
            prepared=prepared,
            limit=request.limit,
            level_ids=self._details.level_ids,
            overlay=overlay,
            packing=_packing(tx, request, options, prepared, overlay=overlay),
        )
        # Compose: in batches, for whose trees alone everything is read.
        self._composer = DetailedComposer(self._details, composers, prepared.composer)
        self._batches = Batches(min(request.limit, LARGEST_BATCH), LARGEST_BATCH)
        # Rank, then limit: in ``proposals``; who takes ten proposals has no more trees read and composed than for ten.

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels, outermost first."""
        return self._levels.names

    @property
    def summaries(self) -> Summaries:
        """What has been read of the trees that were composed in."""
        return self._details.summaries

    @property
    def complete(self) -> bool:
        """Whether no search in a tree was cut off."""
        return self._composer.complete

    def proposals(self, *, only: int | None = None) -> Iterator[Proposal]:
        """Yield proposals, the best first. ``only`` is the root of the one tree to be looked at."""
        portions = self._forecast.as_needed() if only is None else self._forecast.only(only)
        return map(itemgetter(1), best_first(self._hopeful(portions), self._ranked, self._batches))

    def roots(self) -> Iterator[int]:
        """Yield the roots of the trees where the request may fit, the most promising first; composes nothing."""
        for trees, _rest in self._hopeful(self._forecast.portions()):
            for _key, tree in sorted(trees, key=itemgetter(0)):
                yield tree.root

    def _hopeful(self, portions: Iterator[Portion]) -> Iterator[Portion]:
        for trees, rest in portions:
            hopeful = [(key, tree) for key, tree in trees if not self.prepared.composer.is_hopeless(tree)]
            self.searched += len(hopeful)
            yield Portion(hopeful, rest)

    def _ranked(self, batch: Sequence[Keyed]) -> Iterator[RankedProposal]:
        """Compose in some trees; each proposal has the score that its own places leave it."""
        composed = self._composer.composed([tree for _key, tree in batch])
        for ((fails, _highest, root), _tree), one in zip(batch, composed, strict=True):
            for number, proposal in enumerate(one.ways):
                yield (fails, self._forecast.negated_score(root, proposal.counts), root, number), proposal

    def inside(self, places: Collection[int]) -> frozenset[str]:
        """Return the uuids of places that have been proposed, and of all providers below them."""
        if not places:
            return frozenset()
        members = self.summaries.members
        parents = {id_: member.parent_id for id_, member in members.items()}
        return frozenset(m.uuid for m in members.values() if not set(places).isdisjoint(upwards(m.id, parents)))

    def score(self, proposal: Proposal) -> Score:
        """Return the score of a proposal, in parts."""
        requested = summed(proposal.amounts.values())
        tree = self._composer.known[proposal.root]
        node, fragmentation = ScoredNode(*tree.totals()), None
        if self._options.packer is not None:
            fragmentation = self._options.packer.judge_in(self._tx).score(tree.left(), proposal.amounts)
        return score(self._profile, requested, node, counts=proposal.counts, fragmentation=fragmentation)


def _packing(
    tx: Transaction, request: PlannerRequest, options: PlannerOptions, prepared: Prepared, *, overlay: Overlay
) -> TreePacking | None:
    """Return what a request does to the devices of trees, where the profile counts that."""
    if options.packer is None:
        return None
    changed = changed_providers(tx, overlay) if overlay.changes else {}
    if request.paths:
        return options.packer.judged(tx, prepared.plan, [WantedOfHost(prepared.composer.requested, 1, ())], changed)
    counts = {one.suffix: one.count for one in request.groups}
    return options.packer.judged(tx, prepared.plan, wanted_by(prepared.plan, counts), changed)


def _check_names(tx: Transaction, request: PlannerRequest, plan: Plan) -> None:
    """Refuse the first name that does not exist."""
    names = {name for demand in plan.demands for name, _amount in demand.resources}
    classes = tx.names.classes.ids(tx.connection, names)
    for name in sorted(names - classes.keys()):
        groups = [one.suffix for one in request.groups if name in one.group.resources]
        where = ("groups", groups[0], "resources", name) if groups else ("paths",)
        raise InvalidAt(where, f"There is no resource class {name}.")
    asked = list(_traits_of(request))
    traits = tx.names.traits.ids(tx.connection, frozenset().union(*[of_one for _path, of_one in asked]))
    for path, of_one in asked:
        if unknown := sorted(of_one - traits.keys()):
            raise InvalidAt(path, f"There is no trait {unknown[0]}.")


def _traits_of(request: PlannerRequest) -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    """Yield the traits that conditions name, with where they stand."""
    yield ("root_required",), request.root_required | request.root_forbidden
    for one in request.groups:
        for group, key in ((one.group, "required"), (one.device, "selector")):
            if group is not None:
                yield ("groups", one.suffix, key), group.forbidden.union(*group.required)
