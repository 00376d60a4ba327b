"""The whole cloud as a map: how full each host is, how many more of a request fit, and who is on it; or one host."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

from placement.allocators.bundle_packing import Copies
from placement.candidates.headroom.forms import CloudInForms
from placement.candidates.headroom.totals import Headroom
from placement.domain.search_plan import CandidateRequest
from placement.domain.tree import PlaceLock
from placement.errors import Gone, Invalid, NotFound
from placement.services.allocation_candidates import CandidateQuestion, Explained, answer_to, explained
from placement.services.console.hosts import AMOUNTS, Hosts
from placement.services.console.tree import DEEPEST, Drawing, DrawnProvider, drawing, drawn_providers
from placement.services.planner.request_rooms import headroom_in
from placement.store.connection.database import Transaction, reads_anywhere
from placement.store.console import tree
from placement.store.console.consumers import project_names, roots_of_project
from placement.store.console.providers import NamedHost, hosts_with
from placement.store.console.stocks import MAX_CHANGES, used_since
from placement.store.journal.history import complete_since

USUAL_CLASS = "VCPU"
MAX_PROJECTS = 100

MAX_DRAWN = 40


@dataclass(frozen=True, slots=True)
class MapQuestion:
    """What a map should show.

    ``class_name`` is empty for the scarcest class that is asked for, or the usual one; ``time`` is one in the past,
    from the journal. ``ranked`` ask for the best hosts for ``request`` by some profiles. ``locks`` are classes that do
    not stand for devices.
    """

    class_name: str = ""
    aggregates: Collection[str] = ()
    request: CandidateRequest | None = None
    project: str = ""
    knows_projects: bool = False
    time: datetime | None = None
    knows_past: bool = False
    ranked: Sequence[CandidateQuestion] = ()
    place_locks: Sequence[PlaceLock] = ()
    locks: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class RoomOnMap:
    """How many more copies of a request fit: in total, by root, and among some hosts together.

    ``scarce`` is the class whose free amounts are given, a device class if possible; ``stranded`` are those without a
    copy.
    """

    copies: Copies
    fits: Mapping[int, Copies]
    among: Callable[[Collection[int]], Copies]
    scarce: str
    free: Mapping[int, int]
    stranded: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class CloudMap:
    """A map: all hosts by name, and what is shown of them by root.

    ``stocks`` are capacity and usage of the class; ``members`` the roots of the trees in each aggregate; ``lit`` the
    hosts of the requested project; ``orders`` the roots of the best hosts by each profile, best first; ``since`` the
    time from which the journal records every change.
    """

    hosts: Sequence[NamedHost]
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

    Invalid or NotFound for unknown names; Gone if the journal does not go back that far, or too much has changed since.
    """
    hosts = Hosts(tx)
    room = _room(tx, question, question.request) if question.request else None
    classes = {name: class_id for class_id, name in hosts.classes.items()}
    if question.class_name and question.class_name not in classes:
        raise NotFound(f"No provider has inventory of {question.class_name}.")
    in_order = (question.class_name, room.scarce if room else "", USUAL_CLASS, *classes)
    class_name, stocks = next((name for name in in_order if name in classes), ""), dict[int, tuple[int, int]]()
    if class_name:
        trees, capacity, used = hosts.amounts(classes[class_name])
        amounts = zip(capacity.tolist(), used.tolist(), strict=True)
        stocks = dict(zip(hosts.roots[trees].tolist(), amounts, strict=True))
    if question.time is not None:
        stocks = _as_it_was(tx, stocks, class_name, question.time)
    return CloudMap(
        hosts=hosts.named,
        classes=[*classes],
        class_name=class_name,
        stocks=stocks,
        disabled=hosts.root_ids(hosts.disabled),
        members=hosts.in_groups(question.aggregates),
        projects=project_names(tx, limit=MAX_PROJECTS) if question.knows_projects else (),
        lit=roots_of_project(tx, question.project) if question.project else None,
        room=room,
        orders=[
            list(dict.fromkeys([root for root, _choice in answer_to(tx, ranked).candidates]))
            for ranked in question.ranked
        ],
        since=complete_since(tx) if question.knows_past else None,
    )


def _as_it_was(
    tx: Transaction, stocks: Mapping[int, tuple[int, int]], class_name: str, time: datetime
) -> dict[int, tuple[int, int]]:
    begins = complete_since(tx)
    if begins is None or time < begins:
        raise Gone("The journal does not reach back that far.")
    grown = used_since(tx, class_name, time)
    if grown is None:
        raise Gone(f"More than {MAX_CHANGES:,} allocations have changed since then: ask for a later time.")
    return {root: (capacity, used - grown.get(root, 0)) for root, (capacity, used) in stocks.items()}


def _room(tx: Transaction, question: MapQuestion, request: CandidateRequest) -> RoomOnMap:
    headroom, cloud = headroom_in(tx, request, locks=question.place_locks)
    names = list(dict.fromkeys(name for group in request.groups for name in group.resources))
    devices = [name for name in names if name not in AMOUNTS and name not in question.locks]
    scarce = next(iter((*devices, *names)), "")
    fits, free = headroom.trees(), _free(headroom, cloud, scarce)
    return RoomOnMap(
        copies=headroom.copies,
        fits=fits,
        among=headroom.among,
        scarce=scarce,
        free=free,
        stranded={root: amount for root, amount in free.items() if amount and root not in fits},
    )


def _free(headroom: Headroom, cloud: CloudInForms, class_name: str) -> dict[int, int]:
    class_id = cloud.ids.classes.get(class_name)
    if class_id is None:
        return {}
    free = cloud.free_in_trees[class_id]
    forms = [of_form.trees for of_form in headroom.counted if of_form.trees.has(class_id)]
    return {
        root: amount
        for trees in forms
        for root, amount in zip(trees.roots.tolist(), free[trees.trees].tolist(), strict=True)
    }


@dataclass(frozen=True, slots=True)
class HostOnMap:
    """A host, its drawn providers, each after its parent, with their depth, and why no more copies fit."""

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
    """Return the host whose uuid has this beginning; NotFound if there is none, Invalid if there are several.

    ``levels`` maps names of levels to the traits of their places, outermost first.
    """
    hosts = hosts_with(tx, beginning)
    if not hosts:
        raise NotFound("No host has a uuid that begins with this text.")
    if len(hosts) > 1:
        raise Invalid("Several hosts have a uuid that begins with this text.")
    host = hosts[0]
    parents = tree.parents_by_name(tx, host)
    drawn = drawing(parents, host, max_providers=MAX_DRAWN, deepest=DEEPEST)
    nodes = drawn_providers(tx, drawn.drawn, levels)
    return HostOnMap(
        root=nodes[host],
        providers=[(depth, nodes[id_]) for depth, id_ in _in_order(drawn, host, 0)],
        size=len(parents),
        explained=explained(tx, request, locks=locks, only_root=host) if request else None,
    )


def _in_order(drawn: Drawing, id_: int, depth: int) -> Iterator[tuple[int, int]]:
    yield depth, id_
    for child in drawn.children[id_]:
        yield from _in_order(drawn, child, depth + 1)
