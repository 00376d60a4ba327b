"""Plans one request inside a transaction: which trees, what in them, the best first. Reads only."""

from collections.abc import Callable, Collection, Iterator, Sequence
from operator import itemgetter

from placement.allocators.strategy_fit import Node
from placement.candidates.compose.devices import DeviceComposer
from placement.candidates.compose.paths import PathComposer
from placement.candidates.compose.proposals import Proposal, Proposals
from placement.candidates.proposals_in_order import Keyed, Scored, in_order
from placement.candidates.ranking import Portion
from placement.candidates.scores import Score, score
from placement.domain.planner_request import PlannerRequest
from placement.domain.planner_tree import PlannerTree, ancestry
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree
from placement.errors import InvalidAt
from placement.services.planner.composers import Composers, PlannerOptions
from placement.services.planner.details import Details
from placement.services.planner.forecast import Forecast
from placement.services.planner.least_places import Wanted
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.names import ids_for
from placement.store.search.narrowing import Narrowing
from placement.store.search.summaries import Summaries


class Planning:
    """One request being planned.

    Args:
        tx: the transaction.
        request: the request.
        options: the operator's.
        composers: what has been worked out is taken from here, and kept here.

    Raises:
        InvalidAt: the request names a class, trait or level that does not exist.
    """

    def __init__(
        self, tx: Transaction, request: PlannerRequest, options: PlannerOptions, composers: Composers | None = None
    ) -> None:
        self._tx = tx
        self._request = request
        self._options = options
        self._composers = composers or Composers()
        prepared = self._composers.prepared(request, options)
        self._plan, self._levels, self._composer = prepared.plan, prepared.levels, prepared.composer
        _check_names(tx, request, self._plan)
        self.prepared = prepared
        narrowing = Narrowing(tx, self._plan, ids_for(tx, self._plan))
        self._details = Details(tx, self._levels, with_units=bool(request.paths))
        self._forecast = Forecast(tx, narrowing, profile=options.profile, requested=prepared.requested)
        self._known: dict[int, PlannerTree] = {}
        self.searched = 0
        self.complete = True

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels, outermost first."""
        return self._levels.names

    @property
    def summaries(self) -> Summaries:
        """What has been read of the trees that were composed in."""
        return self._details.summaries

    def proposals(self, *, only: int | None = None) -> Iterator[Proposal]:
        """Yield proposals, the best first. ``only`` is the root of the one tree to be looked at."""
        portions = (
            self._portions(self._forecast.as_needed) if only is None else self._hopeful(self._forecast.only(only))
        )
        return in_order(portions, self._compose, wanted=self._request.limit)

    def roots(self) -> Iterator[int]:
        """Yield the roots of the trees where the request may fit, the most promising first; composes nothing."""
        for trees, _rest in self._portions(self._forecast.portions):
            for _key, tree in sorted(trees, key=itemgetter(0)):
                yield tree.root

    def _portions(self, read: Callable[[int, Wanted, Sequence[int | None]], Iterator[Portion]]) -> Iterator[Portion]:
        wanted = self._composer.counted if isinstance(self._composer, DeviceComposer) else ()
        return self._hopeful(read(self._request.limit, wanted, self._details.level_ids))

    def _hopeful(self, portions: Iterator[Portion]) -> Iterator[Portion]:
        for trees, rest in portions:
            hopeful = [(key, tree) for key, tree in trees if not self._is_hopeless(tree)]
            self.searched += len(hopeful)
            yield Portion(hopeful, rest)

    def inside(self, places: Collection[int]) -> frozenset[str]:
        """Return the uuids of places that have been proposed, and of all providers below them."""
        if not places:
            return frozenset()
        members = self.summaries.members
        parents = {id_: member.parent_id for id_, member in members.items()}
        return frozenset([m.uuid for m in members.values() if not set(places).isdisjoint(ancestry(m.id, parents))])

    def score(self, proposal: Proposal) -> Score:
        """Return the score of a proposal, in parts."""
        requested: dict[str, int] = {}
        for amounts in proposal.amounts.values():
            for name, amount in amounts.items():
                requested[name] = requested.get(name, 0) + amount
        return score(self._options.profile, requested, self._node(proposal.root), counts=proposal.counts)

    def _node(self, root: int) -> Node:
        capacities: dict[str, int] = {}
        used: dict[str, int] = {}
        tree = self._known[root]
        for provider in tree.own(tree.stocks):
            for name, stock in tree.stocks[provider].items():
                capacities[name] = capacities.get(name, 0) + stock.capacity
                used[name] = used.get(name, 0) + stock.used
        return Node(capacities, used)

    def _is_hopeless(self, tree: Tree) -> bool:
        return isinstance(self._composer, DeviceComposer) and self._composer.is_hopeless(tree)

    def _compose(self, keyed: Sequence[Keyed]) -> Iterator[Scored]:
        details = self._details.of([tree for _key, tree in keyed])
        for ((fails, _bound, root), tree), in_detail in zip(keyed, details, strict=True):
            self._known[root] = in_detail
            found = self._proposals_in(tree, in_detail)
            self.complete = self.complete and found.complete
            for number, proposal in enumerate(found.found):
                yield Scored((fails, self._forecast.score_below(root, proposal.counts), root, number), proposal)

    def _proposals_in(self, tree: Tree, details: PlannerTree) -> Proposals:
        if isinstance(self._composer, PathComposer):
            return self._composer.proposals(details, self._composers.share)
        return self._composer.proposals(tree, details, self._composers.share)


def _check_names(tx: Transaction, request: PlannerRequest, plan: Plan) -> None:
    """Refuse the first name that does not exist."""
    names = {name for kind in plan.kinds for name, _amount in kind.resources}
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
