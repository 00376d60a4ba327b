"""Evacuation of a host: the consumers on its tree, and where each of them could go."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.places import PlaceLock
from placement.errors import Invalid
from placement.services.cloud_cache import CloudCache
from placement.services.planner.request_rooms import Changes, Copies, Headrooms, Listing, Named, headrooms
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import tree as store
from placement.store.console.stocks import DISABLED
from placement.store.console.tree import PlacedAmount, TreePart
from placement.store.providers import required_provider

MAX_CONSUMERS = 1000
MAX_SHAPES = 20
"""How many kinds of consumers to count room for; further ones are listed without."""

MAX_GROUPS = 16
"""Consumers on more providers are counted as a single group: one group for each provider would take too long."""

PLACES = 3

Shape = tuple[tuple[tuple[str, int], ...], ...]
"""What is held from each provider, class by class, regardless of which providers they are."""


@dataclass(frozen=True, slots=True)
class MovingConsumer:
    """A consumer to move."""

    uuid: str
    project_id: str
    type: str | None


@dataclass(frozen=True, slots=True)
class MovingKind:
    """Consumers to move that hold the same.

    Args:
        held: what each of them holds in the tree.
        consumers: the consumers.
        room: how many of them would fit into other trees; None if not counted.
        places: the trees with most room for them, and for how many.
    """

    held: Mapping[str, int]
    consumers: Sequence[MovingConsumer]
    room: Copies | None = None
    places: Sequence[tuple[Named, Copies]] = ()


@dataclass(frozen=True, slots=True)
class Evacuation:
    """The consumers to move off a tree, and where they could go.

    Args:
        uuid, name: those of its root.
        kinds: the consumers grouped by what they hold, the largest amounts first.
        all_fit: whether all of them fit elsewhere together; None if unknown.
        has_more: whether there are more consumers than listed.
    """

    uuid: str
    name: str
    kinds: Sequence[MovingKind]
    all_fit: bool | None
    has_more: bool

    @property
    def consumers(self) -> list[MovingConsumer]:
        """All consumers listed."""
        return [consumer for kind in self.kinds for consumer in kind.consumers]


@dataclass(frozen=True, slots=True)
class _EvacuatedTree:
    """The tree to evacuate, and what is held in it."""

    uuid: str
    name: str
    amounts: list[PlacedAmount]
    has_more: bool


def evacuation(
    database: Database, uuid: str, *, locks: Sequence[PlaceLock] = (), cache: CloudCache | None = None
) -> Evacuation:
    """Return the consumers to move off the tree of a provider, and where they could go. Nothing is moved.

    Room is counted for what each consumer holds here, provider by provider, on hosts that are neither disabled nor
    inside a place that somebody holds exclusively. The traits and aggregates of the original request are unknown.

    Raises:
        ProviderNotFound: there is no such provider.
    """
    found = _held(database, uuid)
    shapes = _shapes(found.amounts)
    counted = dict(list(shapes.items())[:MAX_SHAPES])
    requests = {str(number): _request(shape) for number, shape in enumerate(counted)}
    numbers = [len(consumers) for consumers in counted.values()]
    room = _room(database, requests, numbers, without=found.uuid, locks=locks, cache=cache)
    kinds = []
    for number, (shape, consumers) in enumerate(shapes.items()):
        held = _summed(shape)
        if room is None or str(number) not in room.of:
            kinds.append(MovingKind(held, consumers))
        else:
            one = room.of[str(number)]
            places = [(room.providers[root], copies) for root, copies in one.trees]
            kinds.append(MovingKind(held, consumers, one.copies, places))
    return Evacuation(found.uuid, found.name, kinds, _all_fit(shapes, room), found.has_more)


@reads_anywhere
def _held(tx: Transaction, uuid: str) -> _EvacuatedTree:
    provider = required_provider(tx, uuid)
    root = required_provider(tx, provider.root_uuid)
    amounts, has_more = store.placed_amounts(tx, TreePart(root.id), most=MAX_CONSUMERS)
    return _EvacuatedTree(root.uuid, root.name or root.uuid, amounts, has_more)


def _shapes(amounts: Sequence[PlacedAmount]) -> dict[Shape, list[MovingConsumer]]:
    """Group consumers by what they hold, those on most providers and classes first."""
    placed: dict[MovingConsumer, dict[int, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for row in amounts:
        consumer = MovingConsumer(row.consumer_uuid, row.project_id, row.consumer_type)
        placed[consumer][row.provider_id][row.class_name] = row.used
    found: dict[Shape, list[MovingConsumer]] = defaultdict(list)
    for consumer, providers in placed.items():
        found[tuple(sorted(tuple(sorted(held.items())) for held in providers.values()))].append(consumer)
    return dict(sorted(found.items(), key=lambda one: (-sum(map(len, one[0])), one[0])))


def _request(shape: Shape) -> CandidateRequest:
    """Return a request for the same again, from one provider for each provider held."""
    disabled = frozenset({DISABLED})
    if len(shape) == 1 or len(shape) > MAX_GROUPS:
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
    cache: CloudCache | None,
) -> Headrooms | None:
    if not requests:
        return None
    mix = {name: Fraction(number, sum(numbers)) for name, number in zip(requests, numbers, strict=True)}
    listing = Listing(trees=True, models=False, limit=PLACES)
    try:
        changes = Changes(without=[without])
        return headrooms(database, requests, listing, mix=mix, changes=changes, locks=locks, cache=cache)
    except Invalid:
        # The provider, or a class, has been deleted since its consumers were read.
        return None


def _all_fit(shapes: Mapping[Shape, Sequence[MovingConsumer]], room: Headrooms | None) -> bool | None:
    """Tell whether all fit; None if not all were counted, or the bounds of the count leave it open."""
    if room is None or room.mix is None or len(shapes) > MAX_SHAPES:
        return None
    together = sum(map(len, shapes.values()))
    return True if room.mix.least >= together else False if room.mix.most < together else None
