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

from placement.allocators import Number
from placement.allocators.fair_share.gate import (
    Competitor,
    Decision,
    beyond_entitlement,
    decide,
    decide_each,
    overdraft,
)
from placement.allocators.fair_share.order import Task
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import Amounts
from placement.candidates.compose.proposals import ProposalComposer
from placement.errors import Conflict, InvalidAt, Unavailable
from placement.services.fair_share.shares import UNKNOWN, UsageCache, Where, Wish, counted, current_reading, usage_of
from placement.services.planner.candidates import planned_candidates
from placement.services.planner.gang import ClaimMember, by_difficulty
from placement.services.planner.questions import Composers
from placement.settings.planner.values import FairShareSettings
from placement.store.connection.database import Database, Transaction, reads
from placement.store.consumers import consumer_generations
from placement.store.fair_share import lock_classes


class UnfairClaim(Conflict):
    """The claim takes more than its fair share while others wait."""

    code = "placement.planner.unfair_claim"


@dataclass(frozen=True, slots=True)
class Terms:
    """The conditions of a claim, which stand at ``where``: what others wait for, and limits by path of a queue, 0..1.

    ``whole``: whether either all members are let through or none.
    """

    wishes: Sequence[Wish] = ()
    limits: Mapping[str, Number] | None = None
    whole: bool = True
    where: Where = ()


class _Claimed(NamedTuple):
    """What a member claims of the classes that count, with the name of its project (or consumer type)."""

    uuid: str
    name: str
    amounts: Amounts


def unfair_claims(
    database: Database, cache: UsageCache, members: Sequence[ClaimMember], terms: Terms
) -> dict[str, UnfairClaim]:
    """Return, by uuid of the consumer, why members are refused; those that are let through are missing.

    Where not all need a place, as many as are fair are let through, in the order of placement. InvalidAt for unknown
    names, and for a wish without a class that counts.
    """
    settings = cache.settings
    for path in terms.limits or ():
        if path not in {settings.queues.root, *settings.queues.weights}:
            raise InvalidAt((*terms.where, "limits", path), "No such queue.")
    competitors = [
        Competitor(settings.queues.path_of(wish.member), Task(task, wish.count))
        for wish, task in zip(terms.wishes, counted(database, settings, terms.wishes), strict=True)
    ]
    claimed = _claimed(database, members if terms.whole else by_difficulty(members), settings)
    participants = (*[member.name for member in claimed], *[wish.member for wish in terms.wishes])
    if not terms.whole:
        alike = _alike(database, claimed, settings)
        shares = cache.reading(database).shares(settings, members=participants)
        claims = [Competitor(leaf, Task(dict(amounts), len(uuids))) for (leaf, amounts), uuids in alike.items()]
        decisions = decide_each(shares, claims, competitors=competitors, limits=terms.limits)
        return {
            uuid: UnfairClaim(_reason_of(decision))
            for uuids, decision in zip(alike.values(), decisions, strict=True)
            if not decision.allowed
            for uuid in uuids[decision.count :]
        }
    # What the members hold now, in the place that they leave or from an earlier run of the same claim.
    given_up = reads(usage_of)(database, settings, consumers=[member.uuid for member in members])
    shares = cache.reading(database).shares(settings, members=(*participants, *given_up))
    for leaf, task in _taken_on_top(shares, settings, claimed, given_up):
        claim = Competitor(leaf, Task(task))
        decision = decide(shares, claim, competitors=competitors, limits=terms.limits)
        if not decision.allowed:
            return dict.fromkeys([member.uuid for member in members], UnfairClaim(_reason_of(decision)))
        _use_more(shares, leaf, task)
    return {}


@reads
def _alike(
    tx: Transaction, claimed: Sequence[_Claimed], settings: FairShareSettings
) -> dict[tuple[str, frozenset[tuple[str, int]]], list[str]]:
    """Return by leaf and amounts who holds nothing yet. Others keep what they have and get no more."""
    existing = consumer_generations(tx, [member.uuid for member in claimed])
    alike = defaultdict[tuple[str, frozenset[tuple[str, int]]], list[str]](list)
    for member in claimed:
        if member.uuid not in existing:
            alike[settings.queues.path_of(member.name), frozenset(member.amounts.items())].append(member.uuid)
    return alike


def _taken_on_top(
    shares: FairShares, settings: FairShareSettings, claimed: Sequence[_Claimed], given_up: Mapping[str, Amounts]
) -> list[tuple[str, dict[str, int]]]:
    """Deduct from the usage what the members give up, and return what each leaf takes beyond that."""
    more: dict[str, Counter[str]] = defaultdict(Counter)
    for member in claimed:
        more[settings.queues.path_of(member.name)].update(member.amounts)
    for owner, amounts in given_up.items():
        more[settings.queues.path_of(owner)].subtract(amounts)
    for leaf, amounts in more.items():
        _use_more(shares, leaf, {name: min(0, much) for name, much in amounts.items()})
    return [(leaf, dict(+amounts)) for leaf, amounts in more.items()]


def _use_more(shares: FairShares, leaf: str, more: Amounts) -> None:
    """Add to the usage of a leaf, or deduct from it; what was read may be older than what is deducted."""
    shares.use(leaf, {name: max(0, used + more.get(name, 0)) for name, used in shares.usage(leaf).items()})


def _claimed(database: Database, members: Sequence[ClaimMember], settings: FairShareSettings) -> list[_Claimed]:
    """Return what each member claims, in their order; InvalidAt if a request names something that does not exist."""
    composers, taken, claimed = Composers(), dict[ProposalComposer, Amounts](), list[_Claimed]()
    for member in members:
        composer = composers.composer(member.request, member.options)  # the same for all that want the same
        if composer not in taken:
            amounts = _taken(database, member, composer)
            taken[composer] = {name: amounts[name] for name in settings.classes if name in amounts}
        consumer = member.consumer
        name = (consumer.project_id if settings.leaves == "project" else consumer.consumer_type) or UNKNOWN
        claimed.append(_Claimed(member.uuid, name, taken[composer]))
    return claimed


def _taken(database: Database, member: ClaimMember, composer: ProposalComposer) -> Mapping[str, int]:
    """Return what a member takes; where that depends on the tree ("all", one for each place), the first one decides."""
    requested = composer.requested
    if not any(group.everything or group.per_subtree for group in member.request.groups):
        return requested
    try:
        planned = planned_candidates(database, replace(member.request, limit=1, explain=False), member.options)
    except Unavailable:
        return requested
    taken: Counter[str] = Counter()
    for candidate in planned.candidates[:1]:
        for amounts in candidate.proposal.amounts.values():
            taken.update(amounts)
    return taken or requested


def _reason_of(decision: Decision) -> str:
    if (limit := decision.limit) is not None:
        held = f"With the claim, {limit.path} would hold"
        if (name := limit.resource_class) is not None:
            return f"{held} {limit.would_hold} {name}; its limit is {limit.allowance}."
        return f"{held} {limit.would_hold:.4g} of a class; it may hold {limit.allowance:.4g}."
    assert decision.behind is not None
    node, sibling = decision.behind.node, decision.behind.rival
    first = ", ".join([f"{count} of {leaf}" for leaf, count in sorted(decision.ahead.items())])
    return (
        f"{node.path} has more than its fair share while others wait for what is free: its share by weight is "
        f"{node.weighted_share:.4g}, that of {sibling.path} is {sibling.weighted_share:.4g}. "
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
        """
        before = usage_of(tx, self.settings, types=self.consumer_types, consumers=consumers)
        yield
        after = usage_of(tx, self.settings, types=self.consumer_types, consumers=consumers)
        taken = {owner: Counter(after.get(owner, {})) for owner in before | after}
        for owner, amounts in before.items():
            taken[owner].subtract(amounts)
        if classes := {name for amounts in taken.values() for name, amount in amounts.items() if amount > 0}:
            self._check(tx, taken, classes)

    def _check(self, tx: Transaction, taken: Mapping[str, Amounts], classes: Collection[str]) -> None:
        """Wait for other transactions that take the same classes, then check everybody's shares."""
        # No other lock is taken after these, so whoever holds one of them never waits: no deadlock.
        lock_classes(tx, tx.names.classes.ids(tx.connection, classes).values())
        by_leaf = {
            self.settings.queues.path_of(owner): {name: amounts.get(name, 0) for name in classes}
            for owner, amounts in taken.items()
        }
        concerned = replace(self.settings, classes=tuple(sorted(classes)))
        if beyond_entitlement(self._shares(tx, concerned, taken), by_leaf) is None:
            return
        # Who comes first is a matter of all classes.
        excess = overdraft(self._shares(tx, self.settings, taken), by_leaf)
        if excess is None:
            return
        name, holds = excess.resource_class, f"{excess.path} would hold {excess.holds} {excess.resource_class}"
        if excess.shortage is None:
            raise UnfairAllocation(f"With this, {holds}; its limit is {excess.allowance}.")
        free, lacking = excess.shortage.free, excess.shortage.lacking
        raise UnfairAllocation(
            f"With this, {holds} and is entitled to {excess.allowance}. Of {name}, {free} would be left, and others "
            f"lack {lacking:.4g} of what they are entitled to."
        )

    def _shares(self, tx: Transaction, settings: FairShareSettings, taken: Mapping[str, Amounts]) -> FairShares:
        reading = current_reading(tx, settings, types=self.consumer_types)
        return reading.shares(settings, members=tuple(taken))
