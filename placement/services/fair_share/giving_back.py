"""Find the consumers that should give back what they hold so that a claim fits. Nothing is carried out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from placement.allocators import Number
from placement.allocators.fair_share import reclaim as library
from placement.allocators.fair_share.reclaim import ClaimRights, Giving, Held, Need
from placement.allocators.fair_share.tree import Amounts, ratio
from placement.domain.tree import NamedMember
from placement.services.fair_share.shares import (
    UNKNOWN,
    Wish,
    counted,
    current_reading,
    leaf_names,
    pending_tasks,
)
from placement.services.planner.candidates import PlannedCandidate
from placement.settings.planner.values import FairShareSettings
from placement.store.connection.database import Database, Transaction, reads
from placement.store.fair_share import UsageScope, holdings


@dataclass(frozen=True, slots=True)
class ReclaimOptions:
    """Which consumers may be asked to give back, by their values (0 by default); ``keep`` are left alone.

    With a ``priority``, that of the claim, values are priorities, too.
    """

    values: Mapping[str, Number]
    keep: frozenset[str] = frozenset()
    priority: Number | None = None


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The consumers that should give back what they hold, and what that makes room for.

    ``members`` are the names of leaves by path, ``host`` the uuid of the tree whose consumers give, if only they may,
    and ``candidate`` the one that would then rank first, if amounts alone do not count.
    """

    giving: Giving
    members: Mapping[str, str]
    host: str | None = None
    candidate: PlannedCandidate | None = None
    providers: Mapping[int, NamedMember] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReclaimClaim:
    """Who claims what of the classes that count, the first task that each other leaf waits for, and the rules."""

    settings: FairShareSettings
    options: ReclaimOptions
    member: str
    task: Amounts
    waiting: Mapping[str, Amounts]
    waiting_members: tuple[str, ...]


class ClaimedShares:
    """The shares that a claim meets, and the name of each leaf's project (or consumer type), by path."""

    def __init__(self, tx: Transaction, claim: ReclaimClaim) -> None:
        settings = claim.settings
        reading, named = current_reading(tx, settings), (claim.member, *claim.waiting_members)
        self.claim = claim
        self.shares = reading.shares(settings, waiting=claim.waiting, members=named)
        self.members = leaf_names(settings, [*reading.members(settings), *named])
        self._rights: dict[tuple[str, ...] | None, ClaimRights] = {}

    def rights(self, classes: tuple[str, ...] | None = None) -> ClaimRights:
        """Return the rights of the claimant, by default for the classes that are lacking."""
        if classes not in self._rights:
            claim = self.claim
            path, priority = claim.settings.queues.path_of(claim.member), claim.options.priority
            self._rights[classes] = ClaimRights(self.shares, path, claim.task, classes=classes, priority=priority)
        return self._rights[classes]

    def rights_on_host(self, missing: Mapping[Need, int]) -> ClaimRights:
        """Return the rights for the classes that matter on a host: nobody can have too much of what is plentiful."""
        task = self.claim.task
        lacking = {name for name in task if missing.get(name, 0) > 0}
        return self.rights(tuple(sorted({*self.rights().classes, self._dominant, *lacking})))

    @cached_property
    def _dominant(self) -> str:
        """The class of which the claim is the largest part."""
        task, totals = self.claim.task, self.shares.totals()
        return max(task, key=lambda name: (ratio(task[name], totals[name]), name))


def claim_of(
    database: Database,
    settings: FairShareSettings,
    claimant: Wish,
    *,
    wishes: Sequence[Wish],
    options: ReclaimOptions,
) -> ReclaimClaim:
    """Return the claim on the classes that count, and what others wait for; InvalidAt as ``counted``."""
    pending = pending_tasks(database, settings, wishes)
    task = counted(database, settings, [claimant])[0]
    waiting = {leaf: tasks[0].amounts for leaf, tasks in pending.items()}
    return ReclaimClaim(settings, options, claimant.member, task, waiting, tuple([wish.member for wish in wishes]))


@reads
def reclaim(tx: Transaction, claim: ReclaimClaim) -> GivenBack:
    """Return the consumers that should give back what they hold so that a claim fits. Bypasses the usage cache."""
    met = ClaimedShares(tx, claim)
    rights = met.rights()
    held = _held(tx, claim, {name for _path, name in rights.needs})
    giving = library.reclaim(met.shares, rights.claimant, claim.task, held=held, priority=rights.priority)
    return GivenBack(giving, met.members)


def _held(tx: Transaction, claim: ReclaimClaim, classes: Collection[str]) -> list[Held]:
    settings, options = claim.settings, claim.options
    ids = tx.names.classes.ids(tx.connection, settings.classes)
    names = {id_: name for name, id_ in ids.items()}
    needed = [ids[name] for name in classes if name in ids]
    held: dict[str, tuple[str, dict[str, int]]] = {}
    scope = UsageScope(settings.leaves, names, settings.partition)
    for uuid, owner, class_id, amount in holdings(tx, scope, class_ids=needed) if needed else ():
        if uuid not in options.keep:
            held.setdefault(uuid, (owner or UNKNOWN, {}))[1][names[class_id]] = int(amount)
    path_of = settings.queues.path_of
    return [Held(uuid, path_of(owner), amounts, options.values.get(uuid, 0)) for uuid, (owner, amounts) in held.items()]
