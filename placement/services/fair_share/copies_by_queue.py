"""How many more copies of a request each queue may have: the headroom within its entitlement."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from placement.allocators.bundle_packing import Copies
from placement.allocators.fair_share import Amounts
from placement.candidates.headroom.plans import CountedRequest
from placement.domain.candidate_request import CandidateRequest
from placement.errors import Invalid
from placement.services.fair_share.shares import leaf_names
from placement.services.fair_share.usage_cache import Reading, UsageCache
from placement.services.planner.composers import Composers, PlannerOptions
from placement.settings.planner.values import FairShareSettings
from placement.store.connection.database import Database


class ShareRoom(NamedTuple):
    """The copies that a queue may have: its path, its name, and their number."""

    path: str
    member: str
    copies: Copies


def amounts_of_copy(request: CountedRequest, options: PlannerOptions) -> Amounts:
    """Return the amounts that one copy of a request takes.

    Raises:
        Invalid: they differ from tree to tree.
    """
    if isinstance(request, CandidateRequest):
        taken: Counter[str] = Counter()
        for group in request.groups:
            taken.update(dict(group.resources))
        return taken
    if any(one.everything or one.per_subtree for one in request.groups):
        raise Invalid('What count "all" or "per-subtree" takes differs from tree to tree; it is not counted by share.')
    return Composers().prepared(request, options).composer.requested


def by_share(
    database: Database, cache: UsageCache, copies: Mapping[str, Copies], taken: Mapping[str, Amounts]
) -> dict[str, list[ShareRoom]]:
    """Return how many copies of each request each queue may have before it exceeds its entitlement.

    Entitlements are computed as if everybody wanted more of these classes. Usage may be as old as the cache allows.

    Args:
        database: the database.
        cache: the cached usage.
        copies: how many copies of each request fit in total.
        taken: what one copy of each takes of the classes that count.
    """
    reading = cache.reading(database)
    return {name: _by_share(reading, cache.settings, amounts, copies[name]) for name, amounts in taken.items()}


def _by_share(reading: Reading, settings: FairShareSettings, taken: Amounts, copies: Copies) -> list[ShareRoom]:
    shares = reading.shares(settings)
    entitlements = shares.entitlements(list(taken), more=dict.fromkeys(shares.leaves(), taken))
    rooms = []
    for path, member in leaf_names(settings, reading.members(settings)).items():
        entitled, used = entitlements.of(path), shares.usage(path)
        own = max(0, min([int((entitled[name] - used[name]) // amount) for name, amount in taken.items()]))
        rooms.append(ShareRoom(path, member, Copies(min(copies.least, own), min(copies.most, own))))
    return sorted(rooms, key=lambda room: (-room.copies.least, room.path))
