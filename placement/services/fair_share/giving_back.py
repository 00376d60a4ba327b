"""Find the consumers that should give back what they hold so that a claim fits. Nothing is carried out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from placement.allocators import fair_share as shares_of
from placement.allocators.entries import Number
from placement.allocators.fair_share import Amounts, FairShares, Giving, Held
from placement.services.fair_share.shares import (
    UNKNOWN,
    Reading,
    Wish,
    counted,
    leaf_names,
    pending_tasks,
    totals_now,
    usage_of,
)
from placement.settings.planner.values import FairShareSettings
from placement.store import fair_share as store
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads


@dataclass(frozen=True, slots=True)
class ReclaimOptions:
    """Which consumers may be asked to give back.

    Args:
        values: consumer -> its value; 0 for those not named.
        keep: consumers that must be left alone.
        priority: if given, ``values`` are priorities, and this is the claim's.
    """

    values: Mapping[str, Number]
    keep: frozenset[str] = frozenset()
    priority: Number | None = None


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The consumers that should give back what they hold; ``members`` maps paths of leaves to names."""

    giving: Giving
    members: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reclaim:
    """A claim, the first task that each leaf waits for, and those who wait."""

    member: str
    task: Amounts
    waiting: Mapping[str, Amounts]
    others: tuple[str, ...]


def reclaim_of(database: Database, settings: FairShareSettings, claimant: Wish, wishes: Sequence[Wish]) -> Reclaim:
    """Return the claim on the classes that count, and what others wait for.

    Raises:
        InvalidAt: a class does not exist, or no class of a wish counts.
    """
    pending = pending_tasks(database, settings, wishes)
    task = counted(database, settings, [claimant])[0]
    waiting = {leaf: tasks[0].amounts for leaf, tasks in pending.items()}
    return Reclaim(claimant.member, task, waiting, tuple([wish.member for wish in wishes]))


@reads
def reclaim(tx: Transaction, settings: FairShareSettings, claim: Reclaim, options: ReclaimOptions) -> GivenBack:
    """Return the consumers that should give back what they hold so that a claim fits. Bypasses the usage cache."""
    situation = reclaim_situation(tx, settings, claim)
    shares, claimant = situation.shares, situation.claimant
    needed = {
        name
        for _path, left in shares.bounds(claimant)
        for name, amount in claim.task.items()
        if amount and amount > left[name]
    }
    held = situation.held(tx, needed, options)
    if options.priority is None:
        giving = shares_of.reclaim(shares, claimant, claim.task, held=held)
    else:
        giving = shares_of.preempt(shares, claimant, claim.task, priority=options.priority, held=held)
    return GivenBack(giving, situation.members)


@dataclass(frozen=True, slots=True)
class ReclaimSituation:
    """The shares that a claim meets, and the consumers behind them.

    Args:
        settings: the rules of sharing.
        members: the name of each leaf's project (or consumer type), by path.
        shares: the shares.
        claimant: the path of the claim's leaf.
    """

    settings: FairShareSettings
    members: Mapping[str, str]
    shares: FairShares
    claimant: str

    def held(self, tx: Transaction, classes: Collection[str], options: ReclaimOptions) -> list[Held]:
        """Return everything held by consumers that hold any of these classes and need not keep it."""
        return [
            Held(uuid, self.settings.queues.path_of(member), amounts, options.values.get(uuid, 0))
            for uuid, (member, amounts) in _held(tx, self.settings, classes).items()
            if uuid not in options.keep
        ]


def reclaim_situation(tx: Transaction, settings: FairShareSettings, claim: Reclaim) -> ReclaimSituation:
    """Read the shares that a claim meets."""
    reading = Reading(usage_of(tx, settings), totals_now(tx, settings))
    others = (claim.member, *claim.others)
    members = leaf_names(settings, [*reading.members(settings), *others])
    shares = reading.shares(settings, waiting=claim.waiting, others=others)
    return ReclaimSituation(settings, members, shares, settings.queues.path_of(claim.member))


def _held(
    tx: Transaction, settings: FairShareSettings, classes: Collection[str]
) -> dict[str, tuple[str, dict[str, int]]]:
    """Map each consumer that holds any of these classes to its owner and everything it holds."""
    ids = tx.names.classes.ids(tx.connection, settings.classes)
    names = {id_: name for name, id_ in ids.items()}
    found: dict[str, tuple[str, dict[str, int]]] = {}
    of = [ids[name] for name in classes if name in ids]
    for row in store.holdings(tx, names, settings.partition, of=of) if of else ():
        member = (row.project_id if settings.leaves == "project" else row.consumer_type) or UNKNOWN
        found.setdefault(row.consumer_uuid, (member, {}))[1][names[row.class_id]] = int(row.amount)
    return found
