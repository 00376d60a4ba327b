"""The whole cloud as a map: how full each host is, how many more of a request fit, and who is on it; or one host."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime

from placement.allocators.bundle_packing import Copies
from placement.candidates.explain.explain import explain
from placement.candidates.headroom.forms import CloudInForms
from placement.candidates.headroom.totals import Headroom
from placement.candidates.ranking import Ranking
from placement.domain.drawn_tree import Drawing, drawing
from placement.domain.places import PlaceLock
from placement.domain.search_plan import CandidateRequest, plan_for
from placement.errors import Gone, Invalid, NotFound
from placement.services.allocation_candidates import SearchOptions, answer_to
from placement.services.cloud_cache import cloud_in
from placement.services.console.overview import AMOUNTS, class_in_trees
from placement.services.console.tree import DEEPEST, DrawnProvider, drawn_providers
from placement.services.explain import Explained, condition_masks
from placement.services.fragmentation import FragmentationJudge
from placement.services.planner.request_rooms import headroom_in
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import stocks as store
from placement.store.console import tree
from placement.store.console.consumers import roots_of_project
from placement.store.console.stocks import MAX_CHANGES, MappedHost, disabled_hosts
from placement.store.journal.history import complete_since
from placement.store.marks import hosts_in
from placement.store.search.names import named_providers

USUAL_CLASS = "VCPU"
MAX_PROJECTS = 100

BEST = 100
"""The number of hosts in a profile's ranking."""


MAX_DRAWN = 40


@dataclass(frozen=True, slots=True)
class RankedBy:
    """A profile to rank hosts by, with its judge if it weighs fragmentation."""

    ranking: Ranking
    judge: FragmentationJudge | None


@dataclass(frozen=True, slots=True)
class MapQuestion:
    """What a map should show.

    Args:
        class_name: the class whose usage is shown; empty for the scarcest that is asked for, or the usual one.
        aggregates: the uuids of aggregates whose members are wanted.
        request: the request to count copies of.
        project: the project whose hosts are marked.
        knows_projects: whether to list projects.
        moment: a time in the past, from the journal; None for now.
        knows_past: whether to return the time from which the journal records every change.
        profiles: the profiles that rank the best hosts for the request.
        options: the search options for these rankings; also the locks of places.
        locks: classes that do not stand for devices.
    """

    class_name: str = ""
    aggregates: Collection[str] = ()
    request: CandidateRequest | None = None
    project: str = ""
    knows_projects: bool = False
    moment: datetime | None = None
    knows_past: bool = False
    profiles: Sequence[RankedBy] = ()
    options: SearchOptions = field(default_factory=SearchOptions)
    locks: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class RoomOnMap:
    """How many more copies of a request fit.

    Args:
        copies: how many in total.
        fits: how many on each host that has room, by itself.
        among: returns how many fit into some hosts together.
        scarce: the class whose free amounts are given: a device class, if the request asks for one.
        free: how much of it is free on each host that could serve the request if empty.
        stranded: how much of it is free on each host where no copy fits.
    """

    copies: Copies
    fits: Mapping[int, Copies]
    among: Callable[[Collection[int]], Copies]
    scarce: str
    free: Mapping[int, int]
    stranded: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class CloudMap:
    """A map.

    Args:
        hosts: the roots of all trees, by name.
        classes: the classes that any provider has.
        class_name: the class whose usage is shown.
        stocks: root -> capacity and usage of that class.
        disabled: the hosts whose compute service is disabled.
        members: aggregate -> the roots of its trees.
        projects: some projects.
        lit: the hosts of the requested project, if any.
        room: the room for the request, if any.
        orders: the roots of the best hosts by each profile, best first.
        since: the time from which the journal records every change, if requested and known.
    """

    hosts: Sequence[MappedHost]
    classes: Sequence[str]
    class_name: str
    stocks: Mapping[int, tuple[int, int]]
    disabled: AbstractSet[int]
    members: Mapping[str, Sequence[int]]
    projects: Sequence[str]
    lit: AbstractSet[int] | None = None
    room: RoomOnMap | None = None
    orders: Sequence[Sequence[int]] = ()
    since: datetime | None = None


@reads_anywhere
def cloud_map(tx: Transaction, question: MapQuestion) -> CloudMap:
    """Return a map from one snapshot: a fixed number of statements, O(hosts) work.

    Args:
        tx: the transaction.
        question: what to show.

    Raises:
        Invalid: the request names a class or trait that does not exist.
        NotFound: the cloud has nothing of the class.
        Gone: the journal does not go back that far, or too much has changed since.
    """
    classes = store.held_classes(tx)
    room = _room(tx, question, question.request) if question.request else None
    scarce = room.scarce if room and room.scarce in classes else ""
    class_name = _class(question.class_name or scarce, classes)
    stocks = _capacity_and_use(tx, class_name) if class_name else {}
    if question.moment is not None:
        stocks = _as_it_was(tx, stocks, class_name, question.moment)
    return CloudMap(
        hosts=store.hosts(tx),
        classes=classes,
        class_name=class_name,
        stocks=stocks,
        disabled=disabled_hosts(tx),
        members=hosts_in(tx, question.aggregates),
        projects=store.project_names(tx, most=MAX_PROJECTS) if question.knows_projects else (),
        lit=roots_of_project(tx, question.project) if question.project else None,
        room=room,
        orders=[_best(tx, question, one) for one in question.profiles],
        since=complete_since(tx) if question.knows_past else None,
    )


def _class(wanted: str, held: Sequence[str]) -> str:
    if wanted and wanted not in held:
        raise NotFound(f"No provider has inventory of {wanted}.")
    return wanted or (USUAL_CLASS if USUAL_CLASS in held else next(iter(held), ""))


def _capacity_and_use(tx: Transaction, class_name: str) -> dict[int, tuple[int, int]]:
    """Return the capacity and usage of a class, for each tree that has it."""
    columns = cloud_in(tx).columns
    trees, *amounts = class_in_trees(columns, tx.names.classes.ids(tx.connection, [class_name])[class_name])
    return dict(
        zip(
            columns.providers.roots[trees].tolist(),
            zip(*[amount.tolist() for amount in amounts], strict=True),
            strict=True,
        )
    )


def _as_it_was(
    tx: Transaction, stocks: Mapping[int, tuple[int, int]], class_name: str, moment: datetime
) -> dict[int, tuple[int, int]]:
    """Return the usage at a moment, against today's capacity."""
    begins = complete_since(tx)
    if begins is None or moment < begins:
        raise Gone("The journal does not reach back that far.")
    grown = store.used_since(tx, class_name, moment)
    if grown is None:
        raise Gone(f"More than {MAX_CHANGES:,} allocations have changed since then: ask for a later time.")
    return {root: (capacity, used - grown.get(root, 0)) for root, (capacity, used) in stocks.items()}


def _room(tx: Transaction, question: MapQuestion, request: CandidateRequest) -> RoomOnMap:
    found, cloud = headroom_in(tx, request, locks=question.options.locks)
    asked = list(dict.fromkeys(name for group in request.groups for name in group.resources))
    scarce = next((name for name in asked if name not in AMOUNTS and name not in question.locks), next(iter(asked), ""))
    fits, free = found.trees(), _free(found, cloud, scarce)
    return RoomOnMap(
        copies=found.copies,
        fits=fits,
        among=found.among,
        scarce=scarce,
        free=free,
        stranded={root: amount for root, amount in free.items() if amount and root not in fits},
    )


def _free(found: Headroom, cloud: CloudInForms, class_name: str) -> dict[int, int]:
    class_id = cloud.ids.classes.get(class_name)
    if class_id is None:
        return {}
    free = cloud.free_in_trees[class_id]
    trees = [of_form.trees for of_form in found.counted if of_form.trees.has(class_id)]
    return {
        root: amount for one in trees for root, amount in zip(one.roots.tolist(), free[one.trees].tolist(), strict=True)
    }


def _best(tx: Transaction, question: MapQuestion, by: RankedBy) -> list[int]:
    """Return the roots of the best hosts by a profile: those of the candidates, in their order."""
    if question.request is None:
        return []
    request = replace(question.request, limit=BEST)
    answer = answer_to(tx, request, question.options, by.ranking, judge=by.judge)
    return list(dict.fromkeys(root for root, _choice in answer.candidates))


@dataclass(frozen=True, slots=True)
class HostOnMap:
    """A host.

    Args:
        root: the host itself.
        providers: as many providers of its tree as are drawn, each after its parent, with their depth.
        size: the number of providers in the tree.
        explained: why no further copy of the request fits here, or that one does; None without a request.
    """

    root: DrawnProvider
    providers: Sequence[tuple[int, DrawnProvider]]
    size: int
    explained: Explained | None


@reads_anywhere
def host_on_map(
    tx: Transaction,
    beginning: str,
    request: CandidateRequest | None,
    *,
    levels: Mapping[str, str],
    locks: Sequence[PlaceLock] = (),
) -> HostOnMap:
    """Return the host whose uuid has this beginning.

    Args:
        tx: the transaction.
        beginning: the beginning of the uuid.
        request: the request to explain.
        levels: name of a level -> trait of its places, outermost first.
        locks: the locks of places: nothing fits into a place that somebody holds exclusively.

    Raises:
        NotFound: there is none.
        Invalid: there are several; or a resource class or trait does not exist.
    """
    host = _only([*store.hosts_with(tx, beginning)])
    parents = tree.parents_by_name(tx, host)
    drawn = drawing(parents, host, most=MAX_DRAWN, deepest=DEEPEST)
    nodes = drawn_providers(tx, drawn.drawn, levels)
    return HostOnMap(
        root=nodes[host],
        providers=[(depth, nodes[id_]) for depth, id_ in _in_order(drawn, host, 0)],
        size=len(parents),
        explained=_explained(tx, request, host, locks) if request else None,
    )


def _only(found: Sequence[int]) -> int:
    if not found:
        raise NotFound("No host has a uuid that begins with this text.")
    if len(found) > 1:
        raise Invalid("Several hosts have a uuid that begins with this text.")
    return found[0]


def _in_order(drawn: Drawing, id_: int, depth: int) -> Iterator[tuple[int, int]]:
    yield depth, id_
    for child in drawn.children[id_]:
        yield from _in_order(drawn, child, depth + 1)


def _explained(tx: Transaction, request: CandidateRequest, root: int, locks: Sequence[PlaceLock]) -> Explained:
    plan = plan_for(request)
    explanation = explain(plan, condition_masks(tx, plan, locks=locks, only_root=root))
    return Explained(explanation, named_providers(tx, explanation.providers()))
