"""A host that is to be emptied: who holds something of its tree, and where each of them could go."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.place_lock import PlaceLock
from placement.errors import Invalid
from placement.services.planner.headroom import Changes, Copies, Headrooms, Listing, Named, headrooms
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import tree as store
from placement.store.console.disabled import DISABLED
from placement.store.console.tree import PlacedAmount, TreePart
from placement.store.providers import required_provider

MOST_CONSUMERS = 1000
MOST_SHAPES = 20
"""So many kinds of consumers are counted; the others are listed without where they could go."""

MOST_GROUPS = 16
"""Who holds something of more providers is looked for as a whole: a group for each would take too long."""

PLACES = 3

Shape = tuple[tuple[tuple[str, int], ...], ...]
"""What is held of each provider, class by class, whichever the providers are."""


@dataclass(frozen=True, slots=True)
class Leaver:
    """A consumer that has to go."""

    uuid: str
    project_id: str
    type: str | None


@dataclass(frozen=True, slots=True)
class AlikeLeavers:
    """Consumers that hold the same.

    Args:
        held: what each of them holds of the tree.
        leavers: the consumers.
        room: how many of them would fit into the other trees; None where that was not counted.
        places: the trees with most room for them, and for how many.
    """

    held: Mapping[str, int]
    leavers: Sequence[Leaver]
    room: Copies | None = None
    places: Sequence[tuple[Named, Copies]] = ()


@dataclass(frozen=True, slots=True)
class Emptying:
    """Who has to leave a tree.

    Args:
        uuid, name: those of its root.
        kinds: the consumers, those that hold the same together, the largest first.
        all_fit: whether all of them fit elsewhere together: None where it is not known.
        goes_on: whether there are more consumers than are told.
    """

    uuid: str
    name: str
    kinds: Sequence[AlikeLeavers]
    all_fit: bool | None
    goes_on: bool

    @property
    def leavers(self) -> list[Leaver]:
        """All consumers that are told of."""
        return [leaver for kind in self.kinds for leaver in kind.leavers]


@dataclass(frozen=True, slots=True)
class _Emptied:
    """The tree that is emptied, and what is held of it."""

    uuid: str
    name: str
    amounts: list[PlacedAmount]
    goes_on: bool


def emptying(database: Database, uuid: str, *, locks: Sequence[PlaceLock] = ()) -> Emptying:
    """Tell who would have to leave the tree of a provider, and where they could go. Nothing is moved.

    Where a consumer could go is looked for by what it holds here, provider by provider, on hosts that are not
    disabled, and outside of places of which somebody holds all of a lock; by which traits and aggregates it was placed
    is not known.

    Raises:
        ProviderNotFound: there is no such provider.
    """
    found = _held(database, uuid)
    shapes = _shapes(found.amounts)
    counted = dict(list(shapes.items())[:MOST_SHAPES])
    requests = {str(number): _request(shape) for number, shape in enumerate(counted)}
    numbers = [len(leavers) for leavers in counted.values()]
    room = _room(database, requests, numbers, without=found.uuid, locks=locks)
    kinds = []
    for number, (shape, leavers) in enumerate(shapes.items()):
        held = _summed(shape)
        if room is None or str(number) not in room.of:
            kinds.append(AlikeLeavers(held, leavers))
        else:
            one = room.of[str(number)]
            places = [(room.providers[root], copies) for root, copies in one.trees]
            kinds.append(AlikeLeavers(held, leavers, one.copies, places))
    return Emptying(found.uuid, found.name, kinds, _all_fit(shapes, room), found.goes_on)


@reads_anywhere
def _held(tx: Transaction, uuid: str) -> _Emptied:
    provider = required_provider(tx, uuid)
    root = required_provider(tx, provider.root_uuid)
    amounts, goes_on = store.placed_amounts(tx, TreePart(root.id), most=MOST_CONSUMERS)
    return _Emptied(root.uuid, root.name or root.uuid, amounts, goes_on)


def _shapes(amounts: Sequence[PlacedAmount]) -> dict[Shape, list[Leaver]]:
    """Return the consumers by what they hold, those that hold most first."""
    placed: dict[Leaver, dict[int, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for row in amounts:
        leaver = Leaver(row.consumer_uuid, row.project_id, row.consumer_type)
        placed[leaver][row.provider_id][row.class_name] = row.used
    found: dict[Shape, list[Leaver]] = defaultdict(list)
    for leaver, providers in placed.items():
        found[tuple(sorted(tuple(sorted(held.items())) for held in providers.values()))].append(leaver)
    return dict(sorted(found.items(), key=lambda one: (-sum(map(len, one[0])), one[0])))


def _request(shape: Shape) -> CandidateRequest:
    """Return what asks for the same again, of one provider what is held of one."""
    disabled = frozenset({DISABLED})
    if len(shape) == 1 or len(shape) > MOST_GROUPS:
        return CandidateRequest(groups=(RequestGroup(resources=_summed(shape)),), root_forbidden=disabled)
    groups = [RequestGroup(suffix=f"_{number}", resources=dict(held)) for number, held in enumerate(shape)]
    return CandidateRequest(groups=tuple(groups), root_forbidden=disabled)


def _summed(shape: Shape) -> dict[str, int]:
    amounts: Counter[str] = Counter()
    for held in shape:
        amounts.update(dict(held))
    return dict(sorted(amounts.items()))


def _room(
    database: Database,
    requests: Mapping[str, CandidateRequest],
    numbers: Sequence[int],
    *,
    without: str,
    locks: Sequence[PlaceLock],
) -> Headrooms | None:
    if not requests:
        return None
    mix = {name: Fraction(number, sum(numbers)) for name, number in zip(requests, numbers, strict=True)}
    listing = Listing(trees=True, models=False, limit=PLACES)
    try:
        return headrooms(database, requests, listing, mix=mix, changes=Changes(without=[without]), locks=locks)
    except Invalid:
        # It has been deleted, or a class of it, since its consumers were read.
        return None


def _all_fit(shapes: Mapping[Shape, Sequence[Leaver]], room: Headrooms | None) -> bool | None:
    """Tell whether all fit: None where not all are counted, or the bounds of the count leave it open."""
    if room is None or room.mix is None or len(shapes) > MOST_SHAPES:
        return None
    together = sum(map(len, shapes.values()))
    return True if room.mix.least >= together else False if room.mix.most < together else None
