"""Whether claims and plain allocations are fair.

The gate of claims is optional and best-effort: it refuses unfair claims while others wait. It is not serialised with
claims: two concurrent ones may both pass, and usage may be as old as ``keep_s``. Who gets the last unit of a provider
is decided by the claims themselves.

The gate of plain allocations, ``[fair_share] enforce = plain``, is exact: it runs in the writing transaction, and
transactions that take the same class are serialised. Only consumers of the configured types are checked, and only their
usage counts; so a consumer of another type may take over what one of these gives up, and give it back, as when an
instance is moved.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from placement.allocators.entries import Number
from placement.allocators.fair_share import (
    Amounts,
    Competitor,
    Decision,
    FairShares,
    Overdraft,
    Task,
    beyond_entitlement,
    decide,
    decide_some,
    overdraft,
)
from placement.candidates.planner.question import Prepared
from placement.errors import Conflict, InvalidAt, Unavailable
from placement.services.fair_share.shares import (
    UNKNOWN,
    Reading,
    UsageCache,
    Where,
    Wish,
    counted,
    totals_now,
    usage_of,
)
from placement.services.planner.candidates import planned_candidates
from placement.services.planner.drafting import ClaimMember
from placement.services.planner.gang import by_difficulty
from placement.services.planner.questions import Composers
from placement.settings.planner.values import FairShareSettings
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.consumers import consumer_generations
from placement.store.fair_share import lock_classes


class UnfairClaim(Conflict):
    """The claim takes more than its fair share while others wait."""

    code = "placement.planner.unfair_claim"


@dataclass(frozen=True, slots=True)
class Terms:
    """The conditions that a claim has to meet.

    Args:
        wishes: what others wait for.
        limits: path of a queue -> the largest part of any class that it may hold, 0..1.
        whole: whether either all members are let through or none.
        where: the position of all this in the request.
    """

    wishes: Sequence[Wish] = ()
    limits: Mapping[str, Number] | None = None
    whole: bool = True
    where: Where = ()


class _Claimed(NamedTuple):
    """What a member claims of the classes that count; ``name`` is that of its project (or consumer type)."""

    uuid: str
    name: str
    amounts: Amounts


_AlikeMembers = Mapping[tuple[str, frozenset[tuple[str, int]]], Sequence[str]]
"""The path of a leaf and the amounts, class by class -> the uuids of the members that claim these for it."""


def unfair_claims(
    database: Database, cache: UsageCache, members: Sequence[ClaimMember], terms: Terms
) -> dict[str, UnfairClaim]:
    """Return, by uuid of the consumer, why members are refused; those that are let through are missing.

    Where not all need a place, as many are let through as are fair, in the order of placement.

    Raises:
        InvalidAt: a class or a queue does not exist, or a wish has no class that counts.
    """
    settings = cache.settings
    _check_limits(terms, settings)
    competitors = [
        Competitor(settings.queues.path_of(wish.member), Task(task, wish.count))
        for wish, task in zip(terms.wishes, counted(database, settings, terms.wishes), strict=True)
    ]
    claimed = _claimed(database, members if terms.whole else by_difficulty(members), settings)
    others = (*[one.name for one in claimed], *[wish.member for wish in terms.wishes])
    if not terms.whole:
        shares, alike = cache.reading(database).shares(settings, others=others), _alike(database, claimed, settings)
        return _beyond_what_is_fair(shares, alike, competitors, terms)
    # What the members hold now, in the place that they leave or from an earlier run of the same claim.
    given_up = _given_up(database, settings, members)
    shares = cache.reading(database).shares(settings, others=(*others, *given_up))
    for leaf, task in _taken_on_top(shares, settings, claimed, given_up):
        decision = decide(shares, leaf, task, competitors=competitors, limits=terms.limits)
        if not decision.allowed:
            return dict.fromkeys([member.uuid for member in members], UnfairClaim(_reason_of(decision)))
        _use_more(shares, leaf, task)
    return {}


@reads
def _given_up(
    tx: Transaction, settings: FairShareSettings, members: Sequence[ClaimMember]
) -> dict[str, dict[str, int]]:
    return usage_of(tx, settings, consumers=[member.uuid for member in members])


@reads
def _alike(tx: Transaction, claimed: Sequence[_Claimed], settings: FairShareSettings) -> _AlikeMembers:
    """Return the members that hold nothing yet. Others keep what they have and get no more."""
    known = consumer_generations(tx, [one.uuid for one in claimed])
    alike: dict[tuple[str, frozenset[tuple[str, int]]], list[str]] = defaultdict(list)
    for one in claimed:
        if one.uuid not in known:
            alike[settings.queues.path_of(one.name), frozenset(one.amounts.items())].append(one.uuid)
    return alike


def _beyond_what_is_fair(
    shares: FairShares, alike: _AlikeMembers, competitors: Sequence[Competitor], terms: Terms
) -> dict[str, UnfairClaim]:
    claims = [Competitor(leaf, Task(dict(amounts), len(uuids))) for (leaf, amounts), uuids in alike.items()]
    decided = decide_some(shares, claims, competitors=competitors, limits=terms.limits)
    refused: dict[str, UnfairClaim] = {}
    for uuids, (count, decision) in zip(alike.values(), decided, strict=True):
        if beyond := uuids[count:]:
            refused |= dict.fromkeys(beyond, UnfairClaim(_reason_of(decision)))
    return refused


def _taken_on_top(
    shares: FairShares, settings: FairShareSettings, claimed: Sequence[_Claimed], given_up: Mapping[str, Amounts]
) -> list[tuple[str, dict[str, int]]]:
    """Deduct from the usage what the members give up, and return what each leaf takes beyond that."""
    more: dict[str, Counter[str]] = defaultdict(Counter)
    for one in claimed:
        more[settings.queues.path_of(one.name)].update(one.amounts)
    for member, amounts in given_up.items():
        more[settings.queues.path_of(member)].subtract(amounts)
    for leaf, amounts in more.items():
        _use_more(shares, leaf, {name: min(0, much) for name, much in amounts.items()})
    return [(leaf, dict(+amounts)) for leaf, amounts in more.items()]


def _use_more(shares: FairShares, leaf: str, more: Amounts) -> None:
    """Add to the usage of a leaf, or deduct from it; what was read may be older than what is deducted."""
    shares.use(leaf, {name: max(0, used + more.get(name, 0)) for name, used in shares.usage(leaf).items()})


def _check_limits(terms: Terms, settings: FairShareSettings) -> None:
    paths = {settings.queues.root, *settings.queues.weights}
    for path in terms.limits or ():
        if path not in paths:
            raise InvalidAt((*terms.where, "limits", path), "No such queue.")


def _claimed(database: Database, members: Sequence[ClaimMember], settings: FairShareSettings) -> list[_Claimed]:
    """Return what each member claims, in their order.

    Raises:
        InvalidAt: a request names something that does not exist.
    """
    composers, taken, claimed = Composers(), dict[Prepared, Amounts](), list[_Claimed]()
    for member in members:
        prepared = composers.prepared(member.request, member.options)  # the same for all that want the same
        if prepared not in taken:
            amounts = _taken(database, member, prepared)
            taken[prepared] = {name: amounts[name] for name in settings.classes if name in amounts}
        consumer = member.consumer
        name = (consumer.project_id if settings.leaves == "project" else consumer.consumer_type) or UNKNOWN
        claimed.append(_Claimed(member.uuid, name, taken[prepared]))
    return claimed


def _taken(database: Database, member: ClaimMember, prepared: Prepared) -> Mapping[str, int]:
    """Return the amounts that a member takes, however its request expresses them.

    Where the amount depends on the tree ("all", or one for each place), the tree that ranks first decides.
    """
    requested = prepared.composer.requested
    if not any(one.everything or one.per_subtree for one in member.request.groups):
        return requested
    try:
        found = planned_candidates(database, replace(member.request, limit=1, explain=False), member.options)
    except Unavailable:
        return requested
    taken: Counter[str] = Counter()
    for candidate in found.candidates[:1]:
        for amounts in candidate.proposal.amounts.values():
            taken.update(amounts)
    return taken or requested


def _reason_of(decision: Decision) -> str:
    if decision.limit is not None:
        limit = decision.limit
        if limit.resource_class is not None:
            name = limit.resource_class
            return f"With the claim, {limit.path} would hold {limit.would_hold} {name}; its limit is {limit.most}."
        return (
            f"With the claim, {limit.path} would hold {limit.would_hold:.4g} of a class; it may hold {limit.most:.4g}."
        )
    assert decision.behind is not None
    node, other = decision.behind.node, decision.behind.other
    first = ", ".join([f"{count} of {leaf}" for leaf, count in sorted(decision.ahead.items())])
    return (
        f"{node.path} has more than its fair share while others wait for what is free: its share by weight is "
        f"{node.weighted_share:.4g}, that of {other.path} is {other.weighted_share:.4g}. "
        f"These tasks come before the claim: {first}."
    )


class UnfairAllocation(Conflict):
    """The consumers would take more than their fair share."""

    code = "placement.unfair_allocation"


@dataclass(frozen=True, slots=True)
class PlainGate:
    """The gate: the rules of sharing, and the consumer types they apply to."""

    settings: FairShareSettings
    consumer_types: tuple[str, ...]

    @contextmanager
    def watching(self, tx: Transaction, consumers: Collection[str]) -> Iterator[None]:
        """Compare what projects hold before and after the block, and refuse what they took if it is unfair.

        What each project takes counts, for itself and its queues, whatever others give up in the same request.

        Raises:
            UnfairAllocation: with the figures.
        """
        before = usage_of(tx, self.settings, types=self.consumer_types, consumers=consumers)
        yield
        after = usage_of(tx, self.settings, types=self.consumer_types, consumers=consumers)
        taken = {member: _difference(after.get(member, {}), before.get(member, {})) for member in before | after}
        if classes := {name for amounts in taken.values() for name, amount in amounts.items() if amount > 0}:
            self._check(tx, taken, classes)

    def _check(self, tx: Transaction, taken: Mapping[str, Amounts], classes: Collection[str]) -> None:
        """Wait for other transactions that take the same classes, then check everybody's shares."""
        # No other lock is taken after these, so whoever holds one of them never waits: no deadlock.
        lock_classes(tx, tx.names.classes.ids(tx.connection, classes).values())
        by_leaf = {
            self.settings.queues.path_of(member): {name: amounts.get(name, 0) for name in classes}
            for member, amounts in taken.items()
        }
        concerned = replace(self.settings, classes=tuple(sorted(classes)))
        if beyond_entitlement(self._shares(tx, concerned, taken), by_leaf) is None:
            return
        # Who comes first is a matter of all classes.
        found = overdraft(self._shares(tx, self.settings, taken), by_leaf)
        if found is not None:
            raise UnfairAllocation(_overdraft_in_words(found))

    def _shares(self, tx: Transaction, settings: FairShareSettings, taken: Mapping[str, Amounts]) -> FairShares:
        reading = Reading(usage_of(tx, settings, types=self.consumer_types), totals_now(tx, settings))
        return reading.shares(settings, others=tuple(taken))


def _difference(after: Amounts, before: Amounts) -> dict[str, int]:
    more = Counter(after)
    more.subtract(before)
    return dict(more)


def _overdraft_in_words(found: Overdraft) -> str:
    name, holds = found.resource_class, f"{found.path} would hold {found.holds} {found.resource_class}"
    if found.shortage is None:
        return f"With this, {holds}; its limit is {found.most}."
    left, lacking = found.shortage.left, found.shortage.lacking
    return (
        f"With this, {holds} and is entitled to {found.most}. Of {name}, {left} would be left, and others lack "
        f"{lacking:.4g} of what they are entitled to."
    )
